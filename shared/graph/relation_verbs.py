"""Phrases between two names that say how they are related: data, read by relation_patterns.py.

Of each relation: phrases whose left side is its subject, and phrases whose left side is its object. A slash
parts words that may stand in for each other; ~ marks phrases that often mean something else.
"""

from collections.abc import Mapping

VERBS: Mapping[str, tuple[str, str]] = {
    "OWNED_BY": (
        (
            "owned/maintained/operated/administered by | property of | ~run by | ~handled by | ~cared for "
            "by | in the hands of | gehört/gehören dem/der/den | im besitz von/der/des | betreut "
            "von/durch | verantwortet von | appartient à/au/aux | détenu/détenue par | maintenu/maintenue "
            "par | propiedad de/del | mantenido/mantenida por | gestionado/gestionada por"
        ),
        (
            "owns/own/owned | maintains/maintain/maintained | operates/administers | responsible for | "
            "takes/take/took care of | ~looks/look after | in charge of | ~runs | accountable for | "
            "verantwortlich/zuständig für | besitzt/besitzen | betreut/betreuen | verantwortet | "
            "possède/possèdent | responsable de/du/des/del | posee/poseen | mantiene/mantienen"
        ),
    ),
    "PART_OF": (
        (
            "part of | belongs/belong/belonged to | a component/module/section/subset/segment of | "
            "included in | ~within | contained in | ein/teil des/der/von/vom | bestandteil des/der/von | "
            "gehört/gehören zu/zum/zur | partie de/du/des | parte de/del | pertenece/pertenecen a/al"
        ),
        (
            "consists/consist/consisted of | comprises/comprise | contains/contain | ~includes/include | "
            "made up of | composed of | besteht/bestehen aus | umfasst/umfassen | contient/contiennent | "
            "se compose de | comprend/comprennent | contiene/contienen"
        ),
    ),
    "MEMBER_OF": (
        (
            "member/members of | joined | belongs to the team | mitglied/mitglieder von/der/des | "
            "membre/membres de/du | miembro/miembros de/del"
        ),
        "",
    ),
    "DEPENDS_ON": (
        (
            "depends/depend/depended/depending on/upon | dependent on/upon | requires/require/required | "
            "relies/rely/relied/relying on/upon | ~uses/use | ~using | ~calls/call | ~needs/need | "
            "blocked by | built on | ~reads/read from | ~writes/write to | ~connects/connect to | "
            "~talks/talk to | ~consumes/consume | hängt/hängen ab von | hängt/hängen von | abhängig von | "
            "benötigt/benötigen | ~nutzt/nutzen | ~verwendet/verwenden | braucht/brauchen | "
            "dépend/dépendent de/du/des/d | nécessite/nécessitent | ~utilise/utilisent | depende/dependen "
            "de/del | requiere/requieren | necesita/necesitan | ~utiliza/utilizan"
        ),
        (
            "required/needed by | ~used by | ~called by | blocks | ~consumed by | "
            "benötigt/genutzt/verwendet von | utilisé/utilisée/requis/requise par | "
            "utilizado/utilizada/requerido/requerida por"
        ),
    ),
    "REPORTS_TO": (
        (
            "reports/report/reported/reporting to | managed/supervised by | ~answers to | "
            "works/worked/work under | berichtet/berichten an | untersteht/unterstehen | rend/rendent "
            "compte à/au | relève/relèvent de/du | dépend hiérarchiquement de | reporta/reportan a/al | "
            "responde ante"
        ),
        "supervises/supervised | ~manages/managed",
    ),
    "LED_BY": (
        (
            "led/headed/chaired/coached/captained/governed by | ~under the leadership of | "
            "geleitet/geführt von | dirigé/dirigée/mené/menée par | dirigido/dirigida/liderado/liderada "
            "por"
        ),
        "leads/heads/chairs | leitet/leiten | dirige/dirigent | lidera/dirigen",
    ),
    "CAUSED_BY": (
        (
            "caused/triggered/provoked by | due to | ~because of | resulted/resulting/stemmed/stems from "
            "| attributed to | ~owing to | verursacht/ausgelöst/bedingt durch/von | ~wegen | aufgrund "
            "von/des/der | causé/causée/provoqué/provoquée par | dû/due à/au | "
            "causado/causada/provocado/provocada por | debido/debida a/al"
        ),
        (
            "caused/cause/causes/causing | led/leads/lead to | resulted/results in | "
            "triggered/triggers/trigger | gave rise to | brought about | root cause of | "
            "verursachte/verursacht/verursachten | führte/führten/führt zu/zum/zur | löste aus | "
            "causa/causó/causaron | provoque/provoqua/provoqué | a causé/provoqué/entraîné | "
            "entraîne/entraîna | provoca/provocó/provocaron"
        ),
    ),
    "FIXED_BY": (
        (
            "fixed/resolved/solved/patched/remedied/corrected/closed/addressed/repaired by | "
            "fixed/patched/resolved in | ~resolved with | behoben/gelöst/korrigiert durch/von/mit/in | "
            "corrigé/corrigée/résolu/résolue par/dans/avec | "
            "corregido/corregida/resuelto/resuelta/solucionado/solucionada por/en/con"
        ),
        (
            "fixes/fixed/fix | resolves/resolved/resolve | closes/closed/close | patches/patched | "
            "solves/solved | remedies/remedied | addresses/addressed | behebt/behob/behoben | "
            "corrige/corrigea/corrigen | résout | resuelve/resolvió/soluciona/solucionó/corrigió"
        ),
    ),
    "WORKS_FOR": (
        (
            "works/worked/working/work for/at | employed by/at | ~serves at | arbeitet/arbeiten bei/für | "
            "travaille chez/pour | trabaja en/para"
        ),
        "employs/employed/hired",
    ),
    "LOCATED_IN": (
        (
            "located/situated/based/headquartered/lies/lie/stands in/at/on/near | ~found in | "
            "liegt/liegen in/im | situé/située/basé/basée à/en/au/dans | ubicado/ubicada/situado/situada "
            "en"
        ),
        "",
    ),
    "BORN_IN": (
        "born in/at/near | geboren in | né/née à/en | nacido/nacida/nació en",
        "",
    ),
    "DIED_IN": (
        "died/killed/buried in/at/near | gestorben/starb in | mort/morte à | murió en",
        "",
    ),
    "LIVES_IN": (
        "lives/lived/resides/resided/living in | wohnt in/im",
        "",
    ),
    "EDUCATED_AT": (
        "studied/educated/graduated at/from/in | attended | studierte an",
        "",
    ),
    "SPOUSE_OF": (
        (
            "married/marries | married to | marriage to | wed | ~engaged to | heiratete | verheiratet mit "
            "| épousa/épouse | marié/mariée à/avec | casado/casada con"
        ),
        "",
    ),
    "CHILD_OF": (
        "born to",
        "fathered/begot | gave birth to",
    ),
    "DIRECTED_BY": (
        "directed/helmed/co-directed by | ~film/movie/documentary by | direction by | regie führte",
        "directed/directs/co-directed",
    ),
    "WRITTEN_BY": (
        (
            "written/authored/penned/co-written/scripted by | screenplay/script/novel/book/poem/story by "
            "| play/short story by | geschrieben von | écrit/écrite par | escrito/escrita por"
        ),
        "wrote/authored/penned/co-wrote/writes",
    ),
    "PRODUCED_BY": (
        "produced/co-produced by",
        "produced/co-produced/produces",
    ),
    "COMPOSED_BY": (
        "composed/scored by | music/score/soundtrack by",
        "composed/scored",
    ),
    "PERFORMED_BY": (
        "performed/recorded/sung/covered by | ~song/single/album/track by | released by",
        "sang/sings/performed/recorded/released",
    ),
    "STARS": (
        "starring | stars/starred | ~featuring/features",
        "starred in | appeared in | stars in",
    ),
    "CREATED_BY": (
        (
            "created/developed/designed/built/invented/made/devised/painted/authored by | ~manufactured "
            "by | entwickelt von | développé/développée par | desarrollado/desarrollada por"
        ),
        "created/developed/designed/built/invented/devised/painted/develops/makes",
    ),
    "FOUNDED_BY": (
        (
            "founded/established/co-founded by | started by | gegründet von | fondé/fondée par | "
            "fundado/fundada por"
        ),
        "founded/established/co-founded",
    ),
    "SUCCEEDED_BY": (
        "succeeded/replaced/superseded/followed by",
        "succeeded/succeeds | replaces/replaced | supersedes/superseded | took over from",
    ),
    "PUBLISHED_BY": (
        "published/distributed by",
        "published/publishes/distributed",
    ),
    "ACQUIRED_BY": (
        "acquired/bought/purchased by | sold to",
        "acquired/bought/purchased/acquires | took over",
    ),
    "BASED_ON": (
        "based on | adapted from | adaptation of | remake of | inspired by | ~derived from",
        "",
    ),
    "NAMED_AFTER": (
        "named after/for",
        "",
    ),
    "KILLED_BY": (
        "killed/murdered/assassinated by",
        "killed/murdered/assassinated",
    ),
    "REPORTED_BY": (
        "reported/raised/discovered by",
        "",
    ),
    "APPROVED_BY": (
        "approved/signed by",
        "approved",
    ),
}
