// Functions whose parameters are of every kind that Rust has. Before each call the program tells,
// in a line of JSON, what expressions on its parameters must give.

use std::rc::Rc;

pub struct Point {
    pub x: i32,
    pub y: u8,
    pub z: i64,
}

pub enum Shape {
    Circle { r: u32 },
    Square(u64, u8),
    Empty,
}

#[derive(Clone, Copy)]
pub enum Color {
    Red = 3,
    Green = 9,
}

pub struct Request {
    pub id: u64,
    pub name: String,
    pub path: Vec<u16>,
    pub points: Vec<Point>,
    pub next: Option<Box<Request>>,
    pub shape: Shape,
    pub color: Color,
    pub ok: bool,
    pub pair: (u8, i32),
    pub maybe: Option<u32>,
    pub who: &'static str,
    pub few: [u16; 3],
    pub shared: Rc<Point>,
    pub bytes: &'static [u8],
}

pub mod deep {
    pub struct Thing<T> {
        pub value: T,
    }

    impl<T: Copy> Thing<T> {
        #[inline(never)]
        pub fn get(&self, step: u8) -> T {
            super::keep(&step);
            self.value
        }
    }
}

fn keep<T>(value: &T) {
    // What is read so cannot be optimised away.
    unsafe {
        std::ptr::read_volatile(value as *const T as *const u8);
    }
}

#[inline(never)]
pub fn handle(r: &Request, n: i32, s: &str, v: &[i32]) -> usize {
    keep(r);
    keep(&n);
    keep(&s);
    keep(&v);
    r.name.len() + s.len() + v.len()
}

#[inline(never)]
pub fn visit(p: Point, b: Box<Point>, o: Option<&Point>, name: String) -> i64 {
    keep(&p);
    keep(&o);
    p.z + b.z + o.map(|q| q.z).unwrap_or(0) + name.len() as i64
}

fn point(x: i32) -> Point {
    Point { x, y: x as u8, z: -(x as i64) }
}

fn request(id: u64, next: Option<Box<Request>>) -> Request {
    let few = id as u16;
    Request {
        id,
        name: format!("request {}", id),
        path: vec![few, few + 1, few + 2],
        points: vec![point(few as i32), point(-3)],
        next,
        shape: match id % 3 {
            0 => Shape::Circle { r: few as u32 },
            1 => Shape::Square(1 << 40, 9),
            _ => Shape::Empty,
        },
        color: if id % 2 == 0 { Color::Red } else { Color::Green },
        ok: id % 2 == 1,
        pair: (few as u8, -2),
        maybe: if id % 2 == 0 { None } else { Some(few as u32) },
        who: "nobody",
        few: [few, 2, 3],
        shared: Rc::new(point(few as i32 + 1)),
        bytes: b"xyz",
    }
}

fn tell(function: &str, values: &[(&str, String)]) {
    let told: Vec<String> = values.iter().map(|(e, v)| format!("\"{}\": {}", e, v)).collect();
    println!("EVENT {{\"function\": \"{}\", \"values\": {{{}}}}}", function, told.join(", "));
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text)
}

fn main() {
    for id in 6..12u64 {
        let n = id as i32 - 8;
        let r = request(id, if id % 2 == 0 { None } else { Some(Box::new(request(id + 90, None))) });
        let variant = ["Circle", "Square", "Empty"][id as usize % 3];
        tell("handle", &[
            ("r.id", id.to_string()),
            ("r.name", quoted(&r.name)),
            ("len(r.name)", r.name.len().to_string()),
            ("r.path", format!("{:?}", r.path)),
            ("r.path[1]", r.path[1].to_string()),
            ("len(r.path)", "3".to_string()),
            ("r.points[0].z", r.points[0].z.to_string()),
            ("r.points[1].y", r.points[1].y.to_string()),
            ("r.next.discriminant", quoted(if id % 2 == 0 { "None" } else { "Some" })),
            ("r.shape.discriminant", quoted(variant)),
            ("r.color", quoted(if id % 2 == 0 { "Red" } else { "Green" })),
            ("r.ok", r.ok.to_string()),
            ("r.pair.__0", r.pair.0.to_string()),
            ("r.pair.__1", r.pair.1.to_string()),
            ("r.maybe.discriminant", quoted(if id % 2 == 0 { "None" } else { "Some" })),
            ("r.who", quoted(r.who)),
            ("r.few", format!("{:?}", r.few)),
            ("r.shared.z", r.shared.z.to_string()),
            ("r.bytes", format!("{:?}", r.bytes)),
            ("n", n.to_string()),
            ("s", quoted(&r.name[2..6])),
            ("v", format!("[4, {}, 6]", n)),
        ]);
        if id % 2 == 1 {
            tell("handle", &[
                ("r.next.Some.__0.name", quoted(&r.next.as_ref().unwrap().name)),
                ("r.maybe.Some.__0", r.maybe.unwrap().to_string()),
            ]);
        }
        match r.shape {
            Shape::Circle { r } => tell("handle", &[("r.shape.Circle.r", r.to_string())]),
            Shape::Square(a, b) => tell("handle", &[
                ("r.shape.Square.__0", a.to_string()),
                ("r.shape.Square.__1", b.to_string()),
            ]),
            Shape::Empty => (),
        }
        println!("EVENT handle {}", handle(&r, n, &r.name[2..6], &[4, n, 6]));
        let p = point(n);
        tell("visit", &[
            ("p.x", (n + 1).to_string()),
            ("p.z", (-(n as i64 + 1)).to_string()),
            ("b.z", (-(n as i64 + 2)).to_string()),
            ("o.discriminant", quoted(if n % 2 == 0 { "Some" } else { "None" })),
            ("name", quoted("owned")),
        ]);
        let o = if n % 2 == 0 { Some(&p) } else { None };
        println!("EVENT visit {}", visit(point(n + 1), Box::new(point(n + 2)), o, String::from("owned")));
        println!("EVENT get {}", deep::Thing { value: id as u16 }.get(3));
    }
}
