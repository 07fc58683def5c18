"""Code in every language that is read: two things each, between which stands a line with a percent sign."""

SOURCES = {
    "bash": """heat() {
  local hot=$1

  echo $hot
}
%
cool() {
  for x in 1 2; do
    echo cold
  done
}""",
    "c": """int heat(int a) {
  int b = a;

  return b + 1;
}
%
int cool(int a) {
  while (a) {
    a--;
  }
  return a;
}""",
    "cpp": """template <class T>
T heat(T a) {
  auto b = a;

  return b;
}
%
class Kiln {
 public:
  int cool() { return 1; }
};""",
    "csharp": """class Heat {
  [Fast]
  int Up(int a) {

    return a;
  }
}
%
class Cool {
  int Down(int a) {
    return a;
  }
}""",
    "css": """.hot {
  color: red;

  margin: 0;
}
%
.cold {
  color: blue;
  margin: 1px;
}""",
    "go": """func Heat(a int) int {
	b := a

	return b
}
%
func Cool(a int) int {
	for a > 0 {
		a--
	}
	return a
}""",
    "html": """<section>
  <h1>Hot kilns</h1>

  <p>They are hot.</p>
</section>
%
<section>
  <h1>Cold ones</h1>
  <p>They are cold.</p>
</section>""",
    "java": """class Heat {
  @Override
  int up(int a) {

    return a;
  }
}
%
class Cool {
  int down(int a) {
    return a;
  }
}""",
    "javascript": """export function heat(a) {
  const b = a;

  return b;
}
%
const cool = (a) => {
  while (a) {
    a--;
  }
  return a;
};""",
    "json": """{
"hot": {
  "a": [1, 2, 3],

  "b": true
},
%
"cold": {
  "a": [4, 5, 6],
  "b": null
}
}""",
    "php": """<?php
function heat($a) {
  $b = $a;

  return $b;
}
%
function cool($a) {
  while ($a) {
    $a--;
  }
  return $a;
}""",
    "python": """@cache
def heat(a):
    b = a

    return b
%
async def cool(a):
    while a:
        a -= 1
    return a""",
    "ruby": """def heat(a)
  b = a

  b + 1
end
%
class Kiln
  def cool(a)
    a - 1
  end
end""",
    "rust": """#[inline]
fn heat(a: i32) -> i32 {
    let b = a;

    b
}
%
fn cool(a: i32) -> i32 {
    while a > 0 {
        a -= 1;
    }
    a
}""",
    "tsx": """const Hot = (p: Props) => {
  const b = p.a;

  return <b>{b}</b>;
};
%
function Cold(p: Props) {
  return (
    <i>
      {p.a}
    </i>
  );
}""",
    "typescript": """interface Heat<T> {
  up: T;

  down(a: number): T;
}
%
function cool(a: number): number {
  while (a) {
    a--;
  }
  return a;
}""",
}
