"""Words that a capital does not make a name, since sentences and headings begin with them: data."""

from shared.graph.date_entities import MONTHS
from shared.graph.entity_types import ORGANIZATIONS, RANKS
from shared.graph.role_nouns import ROLES

# Lists of strings would be pages long.

# Never a name alone, and never the first word of one at the beginning of a sentence.
COMMON = frozenset(
    """
    a an the this that these those some any no all both each every either neither none another other
    others such same more most many much few several one two three four five six seven eight nine ten
    first second third next last i you he she it we they me him her us them my your his its our their
    mine yours hers ours theirs who whom whose which what when where why how whether if unless because
    since although though while whereas until till before after during as so then than thus therefore
    hence however moreover furthermore nevertheless meanwhile otherwise instead besides also too only
    even just still yet already again always never often sometimes usually generally normally currently
    recently finally eventually originally initially previously formerly later earlier soon now today
    tomorrow yesterday tonight here there everywhere nowhere and or but nor for in on at by with without
    within from into onto to of off over under above below between among through throughout across along
    around about against toward towards upon via per despite except like unlike near beyond behind
    beside inside outside up down out not yes ok okay please thanks thank sorry hello hi hey dear
    regards sincerely best note notes see let let's do does did don't is are was were be been being am
    has have had having will would can could may might must shall should according based given due
    regarding concerning including following using make made add added adds remove removed fix fixed
    update updated use used set get put run check click open close start stop try keep call send read
    write create delete select enter choose press wait go come take give say said ask asked tell told
    think know want need look find found help show shown follow ensure remember consider avoid chapter
    section figure table page appendix step part item version draft example examples summary overview
    introduction background conclusion conclusions results result discussion methods method abstract
    references contents purpose scope status date time subject title author name description type value
    values key number total yes no true false null none warning error errors question questions answer
    answers problem cause causes reason reasons solution correction action actions decision decisions
    open todo done pending new old good bad great big small high low long short full empty right left
    sunday monday tuesday wednesday thursday friday saturday sundays mondays tuesdays wednesdays
    thursdays fridays saturdays weekday weekend spring summer autumn winter morning afternoon evening
    night day days week weeks month months year years hour hours minute minutes people person man woman
    men women everyone everybody nobody someone somebody anyone anything everything nothing something
    it's he's she's that's there's what's i'm i'll i've i'd we're we've we'll you're you'll they're don
    doesn didn isn aren wasn weren won wouldn couldn shouldn can't won't isn't aren't doesn't didn't etc
    ie eg re fwd fw cc bcc from sent attached attachment kind regards best cheers mr mrs ms dr prof
    whoever whatever whichever whenever wherever once twice perhaps maybe probably certainly indeed
    clearly unfortunately fortunately additionally consequently accordingly similarly likewise rather
    quite very together apart away back well far ago seventy eighty ninety twenty thirty forty fifty
    sixty hundred thousand eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen
    half third nobody's nothing's born died married starring directed written produced der die das dem
    den des ein eine einen einem einer eines und oder aber nicht kein keine ist sind war waren wird
    werden wurde wurden hat haben hatte hatten ich du er sie es wir ihr mein dein sein unser euer dieser
    diese dieses jener jede jeder jedes alle viele wenn weil dass ob als wie wo wer was wann warum bei
    mit nach von aus zu zum zur im in am an auf für über unter vor hinter neben zwischen durch gegen
    ohne um bis seit während trotz wegen auch nur noch schon sehr so dann danach deshalb daher jedoch
    bitte danke hier dort heute morgen gestern le la les l un une des du de et ou mais donc or ni car ne
    pas est sont était étaient été a ont avait je tu il elle nous vous ils elles mon ma mes ton ta tes
    son sa ses notre nos votre vos leur leurs ce cet cette ces qui que quoi dont où quand comment
    pourquoi si dans sur sous avec sans pour par chez entre vers depuis pendant après avant aussi très
    plus moins bien ici là aujourd'hui hier demain merci bonjour el los las uno una unos unas y o pero
    sino no es son era eran fue fueron ha han había yo tú él ella nosotros ellos ellas mi tu su nuestro
    nuestra este esta estos estas ese esa esos esas aquel aquella quien cual cuando donde como porque
    con sin para por en entre hacia desde hasta durante según también muy más menos aquí allí hoy ayer
    mañana gracias hola cada todo toda todos todas welche welcher welches welchen
    """.split()  # noqa: SIM905
) | frozenset(MONTHS)  # fmt: skip
# Where somebody is from is no name of anything.
DEMONYMS = frozenset(
    """
    american british english scottish welsh irish canadian australian french german italian spanish
    portuguese dutch belgian swiss austrian swedish norwegian danish finnish icelandic polish czech
    slovak hungarian romanian bulgarian greek turkish russian ukrainian estonian latvian lithuanian
    serbian croatian bosnian slovenian albanian macedonian georgian armenian azerbaijani iranian persian
    iraqi syrian lebanese israeli jewish egyptian moroccan algerian tunisian libyan sudanese ethiopian
    kenyan nigerian ghanaian african asian european latin mexican cuban brazilian argentine argentinian
    chilean peruvian colombian venezuelan indian pakistani bengali bangladeshi nepali nepalese tibetan
    thai vietnamese cambodian indonesian malaysian malay filipino chinese taiwanese japanese korean
    mongolian arabic arab hebrew tamil telugu hindi urdu malayalam kannada marathi punjabi sanskrit
    roman byzantine christian catholic protestant orthodox anglican muslim islamic buddhist hindu soviet
    americans germans italians russians greeks romans jews christians muslims arabs turks indians
    europeans deutsche deutscher deutschen französische spanische englische europäische
    """.split()  # noqa: SIM905
)
# What joins capitalised words into one name.
CONNECTORS = frozenset(
    """
    of the de la del della di da do dos das du des le von van der den zu zur y bin ibn al el ben av af
    för mac nic ap ó
    """.split()  # noqa: SIM905
)
# Words of titles that need no capital.
SMALL = CONNECTORS | frozenset("a an and or to in on for with by at from und y et e o is not &".split())  # noqa: SIM905
# Where nouns have capitals, a capital tells nothing: two of these say that a text is German.
GERMAN = frozenset(
    """
    der die das und ist nicht ein eine mit von zu den dem im sich wird werden nur für auf oder wenn bei
    sind nach
    """.split()  # noqa: SIM905
)
# What a sentence says of names more than of other things, right behind its first word.
ACTS = frozenset(
    """
    owns maintains depends reports relies belongs married directed wrote founded acquired succeeded
    joined said says told asked replied studied graduated attended lived resides starred composed
    manages leads supervises wurde gehört hängt appartient dépend pertenece depende does doesn't may
    might will
    """.split()  # noqa: SIM905
)
IS = frozenset(
    """
    a an the one born named owned run part required used needed written directed produced managed led
    fixed caused founded located based called known ein eine der die das un une le la una el
    """.split()  # noqa: SIM905
)
# Daughter of Boso, said first: who Boso's daughter is, is said elsewhere.
ROLE_NOUNS = frozenset(noun for sides in ROLES.values() for side in sides for noun in side.split())
# Before "of", these are of one name with what follows: Ministry of Health, House of Commons.
WHOLE = (
    ORGANIZATIONS
    | RANKS
    | frozenset(
        """
    house war wars battle treaty order fund gulf isle tower kingdom republic duchy award prize festival
    day king cup hall field fields garden gardens lord lady art arts book song land son sons city centre
    center gate valley
    """.split()  # noqa: SIM905
    )
) - {"cooperative", "instruments", "company", "inc", "group", "ltd", "gmbh", "corp", "llc"}
# What follows a name with a capital of its own, and is no part of it.
# (Some months are first names.)
ENDLESS = frozenset(MONTHS) - {"april", "may", "june", "august", "mar"} | frozenset(
    """
    i a an the and or but if in on at as is are was were he she it we they monday tuesday wednesday
    thursday friday saturday sunday
    """.split()  # noqa: SIM905
)
