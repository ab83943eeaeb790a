// Functions with results of every kind. Before each call the program tells what it will return.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};

pub struct Point {
    pub x: i32,
    pub y: u8,
    pub z: i64,
}

#[derive(Clone, Copy)]
pub enum Color {
    Red = 3,
    Green = 9,
}

pub struct Only(pub u16);

static SEEN: AtomicU32 = AtomicU32::new(0);

fn seen() {
    // The kernel sets no probe on an instruction with a lock, which the first one would be.
    SEEN.store(SEEN.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

#[inline(never)]
pub fn number(n: u32) -> u32 { seen(); n * 3 }
#[inline(never)]
pub fn negative(n: i8) -> i8 { seen(); -n }
#[inline(never)]
pub fn truth(n: u32) -> bool { seen(); n > 3 }
#[inline(never)]
pub fn letter(n: u32) -> char { seen(); char::from_u32(n + 60).unwrap() }
#[inline(never)]
pub fn color(n: u32) -> Color { seen(); if n > 3 { Color::Red } else { Color::Green } }
#[inline(never)]
pub fn only(n: u32) -> Only { seen(); Only(n as u16 + 7) }
#[inline(never)]
pub fn lent(p: &Point) -> &i64 { seen(); &p.z }
#[inline(never)]
pub fn boxed(n: i32) -> Box<Point> { seen(); Box::new(Point { x: n, y: 1, z: 5 }) }
#[inline(never)]
pub fn perhaps(p: &Point) -> Option<&Point> { seen(); if p.x > 3 { Some(p) } else { None } }
#[inline(never)]
pub fn filled(n: u32) -> Option<NonZeroU32> { seen(); NonZeroU32::new(n - 2) }
#[inline(never)]
pub fn maybe(n: u32) -> Option<bool> { seen(); if n > 3 { Some(n % 2 == 0) } else { None } }
#[inline(never)]
pub fn text(s: &str) -> &str { seen(); &s[1..] }
#[inline(never)]
pub fn slice(s: &[u16]) -> &[u16] { seen(); &s[1..] }

// What is refused.
#[inline(never)]
pub fn string(n: u32) -> String { seen(); n.to_string() }
#[inline(never)]
pub fn pair(n: u32) -> (u32, u32) { seen(); (n, n + 1) }
#[inline(never)]
pub fn option(n: u32) -> Option<u32> { seen(); if n > 3 { Some(n) } else { None } }
#[inline(never)]
pub fn float(n: f64) -> f64 { seen(); n * 2.0 }
#[inline(never)]
pub fn wide(n: u128) -> u128 { seen(); n * 2 }
#[inline(never)]
pub fn unused(n: u32) -> u32 { seen(); SEEN.fetch_add(n, Ordering::Relaxed); n * 5 }

fn tell(function: &str, value: String) {
    println!("EVENT {{\"function\": \"{}\", \"value\": {}}}", function, value);
}

// Nobody knows what it is called with, nor that nothing comes of it.
fn hidden<T>(value: T) -> T {
    std::hint::black_box(value)
}

fn main() {
    let words = ["hello", "rest"];
    for k in 0..4u32 {
        let n = hidden(k + 2);
        let point = Point { x: n as i32, y: 2, z: n as i64 * 7 };
        tell("number", (n * 3).to_string());
        hidden(number(n));
        tell("negative", (-(n as i8)).to_string());
        hidden(negative(n as i8));
        tell("truth", (n > 3).to_string());
        hidden(truth(n));
        tell("letter", format!("\"{}\"", char::from_u32(n + 60).unwrap()));
        hidden(letter(n));
        let (name, value) = if n > 3 { ("Red", 3) } else { ("Green", 9) };
        tell("color", format!("{{\"name\": \"{}\", \"value\": {}}}", name, value));
        hidden(color(n));
        tell("only", format!("[{}]", n + 7));
        hidden(only(n)).0.to_string();
        tell("lent", (n as i64 * 7).to_string());
        hidden(lent(&point));
        tell("boxed", (n as i32).to_string());
        hidden(boxed(n as i32));
        let address = &point as *const Point as usize;
        tell("perhaps", if n > 3 { format!("{{\"Some\": {}}}", address) } else { "\"None\"".into() });
        hidden(perhaps(&point));
        tell("filled", if n > 2 { format!("{{\"Some\": {}}}", n - 2) } else { "\"None\"".into() });
        hidden(filled(n));
        tell("maybe", if n > 3 { format!("{{\"Some\": {}}}", n % 2 == 0) } else { "\"None\"".into() });
        hidden(maybe(n));
        let word = hidden(words[k as usize % 2]);
        tell("text", format!("\"{}\"", &word[1..]));
        hidden(text(word));
        tell("slice", format!("[{}, 9]", n));
        hidden(slice(hidden(&[1, n as u16, 9])));
        hidden((string(n), pair(n), option(n), float(n as f64), wide(n as u128)));
        unused(n);
    }
    println!("EVENT {}", SEEN.load(Ordering::SeqCst) + point_sum());
}

fn point_sum() -> u32 {
    let p = hidden(Point { x: 1, y: 2, z: 3 });
    p.x as u32 + p.y as u32 + p.z as u32 + Color::Green as u32
}
