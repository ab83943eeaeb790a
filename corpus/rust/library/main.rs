// Values of every kind that Rust and its standard library have: enums with a tag, with a niche, with one
// variant; cells, counted pointers, collections, texts of the system. Before each call the program
// tells, in lines of JSON, what expressions on the parameter must give.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, HashSet, LinkedList, VecDeque};
use std::ffi::{CStr, CString, OsStr, OsString};
use std::num::{NonZeroU32, NonZeroU64, Wrapping};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU32};
use std::sync::{Arc, Mutex, RwLock};
use std::time::{Duration, SystemTime};

#[derive(Clone)]
pub struct Point {
    pub x: i32,
    pub y: u8,
    pub z: i64,
}

#[derive(Clone)]
pub enum Shape {
    Circle { r: u32 },
    Square(u64, u8),
    Empty,
}

// The room of the text's capacity tells the variants apart.
#[derive(Clone)]
pub enum Nested {
    Text(String),
    Number(i64),
    Nothing,
}

#[derive(Clone, Copy)]
#[allow(dead_code)]
pub enum Color {
    Red = 3,
    Green = 9,
}

pub enum One {
    Only(u16),
}

pub enum Never {}

#[repr(i8)]
#[derive(Clone)]
pub enum Small {
    Left(u8),
    Right(u8),
}

pub enum Wide {
    A(u128),
    B(i128),
}

// A counted object with members that are called as those of its counters.
pub struct Named {
    pub value: u32,
    pub strong: u16,
}

pub struct All<'a> {
    pub shape: Shape,
    pub shapes: Vec<Shape>,
    pub nested: Nested,
    pub some_nested: [Nested; 3],
    pub one: One,
    pub small: Small,
    pub wide: Wide,
    pub color: Option<Color>,
    pub number: Option<u32>,
    pub filled: Option<NonZeroU32>,
    pub text: Option<&'a str>,
    pub owned: Option<String>,
    pub list: Option<Vec<i32>>,
    pub truth: Option<bool>,
    pub letter: Option<char>,
    pub twice: Option<Option<bool>>,
    pub unit: Option<()>,
    pub inner: Option<Shape>,
    pub pair: Option<(u8, i32)>,
    pub boxed: Option<Box<Point>>,
    pub lent: Option<&'a Point>,
    pub result: Result<u32, String>,
    pub sure: Result<i32, Never>,
    pub cow: Cow<'a, str>,
    pub options: Vec<Option<u32>>,
    pub tuple: (u8, i32, &'a str),
    pub nonzero: NonZeroU64,
    pub wrapping: Wrapping<i32>,
    pub cell: Cell<i32>,
    pub refcell: RefCell<Point>,
    pub mutex: Mutex<i32>,
    pub rwlock: RwLock<Point>,
    pub atomic: AtomicU32,
    pub flag: AtomicBool,
    pub rc: Rc<Point>,
    pub named: Rc<Named>,
    pub rc_text: Rc<str>,
    pub arc_slice: Arc<[u16]>,
    pub shared: Arc<Mutex<i32>>,
    pub deep: Rc<RefCell<Point>>,
    pub pin: Pin<Box<Point>>,
    pub map: HashMap<u32, String>,
    pub set: HashSet<u8>,
    pub tree: BTreeMap<u32, u64>,
    pub leaves: BTreeSet<u8>,
    pub linked: LinkedList<u8>,
    pub heap: BinaryHeap<u32>,
    pub ring: VecDeque<i32>,
    pub no_ring: VecDeque<i32>,
    pub os_string: OsString,
    pub path_buf: PathBuf,
    pub c_string: CString,
    pub os_str: &'a OsStr,
    pub path: &'a Path,
    pub c_str: &'a CStr,
    pub duration: Duration,
    pub short: Duration,
    pub time: SystemTime,
    pub vec: &'a Vec<i32>,
    pub array: &'a [i32; 3],
    pub string: &'a String,
    pub twofold: &'a &'a Point,
    pub counted: &'a u32,
    pub spare: Vec<u16>,
    pub nothing: Vec<()>,
    pub big: u128,
    pub letters: [char; 2],
}

/// What a reader shows of a value, as JSON.
trait Told {
    fn told(&self) -> String;
}

macro_rules! plain {
    ($($t:ty)*) => { $(impl Told for $t { fn told(&self) -> String { self.to_string() } })* };
}
plain!(u8 u16 u32 u64 usize i32 i64 bool);

impl Told for str {
    fn told(&self) -> String { format!("{:?}", self) }
}
impl Told for String {
    fn told(&self) -> String { self.as_str().told() }
}
impl Told for char {
    fn told(&self) -> String { format!("\"{}\"", if *self == '\0' { "\\u0000".into() } else { self.to_string() }) }
}
impl<T: Told + ?Sized> Told for &T {
    fn told(&self) -> String { (**self).told() }
}
impl<T: Told> Told for Option<T> {
    fn told(&self) -> String {
        match self {
            None => "\"None\"".into(),
            Some(inner) => format!("{{\"Some\": {}}}", inner.told()),
        }
    }
}
impl<T: Told> Told for [T] {
    fn told(&self) -> String {
        format!("[{}]", self.iter().map(|one| one.told()).collect::<Vec<_>>().join(", "))
    }
}
impl<T: Told> Told for Vec<T> {
    fn told(&self) -> String { self.as_slice().told() }
}
impl Told for (u8, i32) {
    fn told(&self) -> String { format!("[{}, {}]", self.0, self.1) }
}
impl Told for Point {
    fn told(&self) -> String { format!("{{\"x\": {}, \"y\": {}, \"z\": {}}}", self.x, self.y, self.z) }
}
impl Told for Shape {
    fn told(&self) -> String {
        match self {
            Shape::Circle { r } => format!("{{\"Circle\": {{\"r\": {}}}}}", r),
            Shape::Square(a, b) => format!("{{\"Square\": [{}, {}]}}", a, b),
            Shape::Empty => "\"Empty\"".into(),
        }
    }
}
impl Told for Nested {
    fn told(&self) -> String {
        match self {
            Nested::Text(text) => format!("{{\"Text\": {}}}", text.told()),
            Nested::Number(number) => format!("{{\"Number\": {}}}", number),
            Nested::Nothing => "\"Nothing\"".into(),
        }
    }
}
impl Told for Color {
    fn told(&self) -> String {
        let name = match self { Color::Red => "Red", Color::Green => "Green" };
        format!("{{\"name\": \"{}\", \"value\": {}}}", name, *self as i32)
    }
}

fn keep<T>(value: &T) {
    // What is read so cannot be optimised away.
    unsafe {
        std::ptr::read_volatile(value as *const T as *const u8);
    }
}

#[inline(never)]
pub fn visit(a: &All) -> usize {
    keep(a);
    a.shapes.len()
}

fn address<T>(value: &T) -> String {
    (value as *const T as usize).to_string()
}

fn tell(values: &[(&str, String)]) {
    for (expression, value) in values {
        println!("EVENT {{\"expression\": \"{}\", \"value\": {}}}", expression, value);
    }
}

macro_rules! tell_of {
    ($a:ident: $($field:ident)*) => { tell(&[$((concat!("a.", stringify!($field)), $a.$field.told())),*]) };
}

fn other<T>(present: bool, value: T, name: &str) -> String
where
    T: FnOnce() -> String,
{
    // Of a variant that is not there its fields are not shown, but the name of the other.
    if present { value() } else { format!("{{\"variant\": \"{}\"}}", name) }
}

fn main() {
    let point = Point { x: 4, y: 5, z: -6 };
    let lent = &point;
    let vec = vec![1, 2, 3];
    let array = [7, 8, 9];
    let mut string = String::with_capacity(20);
    string.push_str("string");
    let counted = 5u32;
    let shapes = [Shape::Circle { r: 7 }, Shape::Square(1 << 40, 9), Shape::Empty];
    let nested = [Nested::Text("in".into()), Nested::Number(-5), Nested::Nothing];
    for k in 0..3usize {
        // Its first element is in the middle of the room, the last one before it.
        let mut ring = VecDeque::with_capacity(8);
        let room = ring.capacity();
        for _ in 0..room - 2 {
            ring.push_back(0);
        }
        for _ in 0..room - 2 {
            ring.pop_front();
        }
        for i in 0..5 {
            ring.push_back(i * 10 + k as i32);
        }
        let mut spare = Vec::with_capacity(10);
        spare.push(3);
        let rc = Rc::new(point.clone());
        let a = All {
            shape: shapes[k].clone(),
            shapes: shapes.to_vec(),
            nested: nested[k].clone(),
            some_nested: nested.clone(),
            one: One::Only(11 + k as u16),
            small: if k == 0 { Small::Left(1) } else { Small::Right(2) },
            wide: if k == 0 { Wide::A(7) } else { Wide::B(-8) },
            color: [None, Some(Color::Red), Some(Color::Green)][k],
            number: [None, Some(1), Some(0)][k],
            filled: [None, NonZeroU32::new(5), NonZeroU32::new(6)][k],
            text: [None, Some("str"), Some("")][k],
            owned: [None, Some("owned".to_string()), Some(String::new())][k].clone(),
            list: [None, Some(vec![1, 2]), Some(vec![])][k].clone(),
            truth: [None, Some(true), Some(false)][k],
            letter: [None, Some('é'), Some('\0')][k],
            twice: [None, Some(None), Some(Some(true))][k],
            unit: [None, Some(()), None][k],
            inner: [None, Some(Shape::Empty), Some(Shape::Circle { r: 1 })][k].clone(),
            pair: [None, Some((1, -2)), None][k],
            boxed: if k == 1 { Some(Box::new(point.clone())) } else { None },
            lent: if k == 1 { Some(&point) } else { None },
            result: if k == 0 { Ok(3) } else { Err("bad".into()) },
            sure: Ok(k as i32),
            cow: if k == 0 { Cow::Borrowed("borrowed") } else { Cow::Owned("owned".to_string()) },
            options: vec![None, Some(k as u32)],
            tuple: (1, -2, "three"),
            nonzero: NonZeroU64::new(9).unwrap(),
            wrapping: Wrapping(-4),
            cell: Cell::new(12),
            refcell: RefCell::new(point.clone()),
            mutex: Mutex::new(13),
            rwlock: RwLock::new(point.clone()),
            atomic: AtomicU32::new(16),
            flag: AtomicBool::new(k == 1),
            rc: rc.clone(),
            named: Rc::new(Named { value: 70, strong: 71 }),
            rc_text: "counted".into(),
            arc_slice: vec![4, 5, k as u16].into(),
            shared: Arc::new(Mutex::new(15)),
            deep: Rc::new(RefCell::new(point.clone())),
            pin: Box::pin(point.clone()),
            map: (0..k as u32).map(|i| (i, i.to_string())).collect(),
            set: (0..3).collect(),
            tree: (0..20).map(|i| (i, 2 * i as u64)).collect(),
            leaves: (0..4).collect(),
            linked: (0..3).collect(),
            heap: vec![1, 9, 4].into(),
            ring,
            no_ring: VecDeque::new(),
            os_string: "os".into(),
            path_buf: "/p/b".into(),
            c_string: CString::new("cs").unwrap(),
            os_str: OsStr::new("osr"),
            path: Path::new("/pr"),
            c_str: CStr::from_bytes_with_nul(b"csr\0").unwrap(),
            duration: Duration::new(3, 500_000_000),
            short: Duration::new(0, 1_500),
            time: SystemTime::UNIX_EPOCH + Duration::new(1_700_000_000, 5),
            vec: &vec,
            array: &array,
            string: &string,
            twofold: &lent,
            counted: &counted,
            spare,
            nothing: vec![(), ()],
            big: 1 << 100,
            letters: ['ß', 'x'],
        };
        tell_of!(a: shape shapes nested number text owned list truth letter twice inner pair options color);
        tell(&[
            ("a.some_nested", nested.as_slice().told()),
            ("a.one", format!("{{\"Only\": {}}}", 11 + k)),
            ("a.one.Only.0", (11 + k).to_string()),
            ("a.small", if k == 0 { "{\"Left\": 1}" } else { "{\"Right\": 2}" }.into()),
            ("a.wide", if k == 0 { "{\"A\": \"7\"}" } else { "{\"B\": \"-8\"}" }.into()),
            ("a.filled", a.filled.map(|one| one.get()).told()),
            ("a.unit", if k == 1 { "\"Some\"" } else { "\"None\"" }.into()),
            ("a.boxed", a.boxed.as_ref().map(|one| &**one as *const Point as usize).told()),
            ("a.lent", a.lent.map(|one| one as *const Point as usize).told()),
            ("a.lent.Some.0.z", other(k == 1, || "-6".into(), "None")),
            ("a.shape.Circle.r", other(k == 0, || "7".into(), ["Circle", "Square", "Empty"][k])),
            ("a.shape.Square.1", other(k == 1, || "9".into(), ["Circle", "Square", "Empty"][k])),
            ("a.nested.Text.0", other(k == 0, || "\"in\"".into(), ["Text", "Number", "Nothing"][k])),
            ("a.result", if k == 0 { "{\"Ok\": 3}" } else { "{\"Err\": \"bad\"}" }.into()),
            ("a.sure", format!("{{\"Ok\": {}}}", k)),
            ("a.cow", if k == 0 { "{\"Borrowed\": \"borrowed\"}" } else { "{\"Owned\": \"owned\"}" }.into()),
            ("a.tuple", "[1, -2, \"three\"]".into()),
            ("a.tuple.1", "-2".into()),
            ("a.nonzero", "9".into()),
            ("a.wrapping", "-4".into()),
            ("a.wrapping.0", "-4".into()),
            ("a.cell", a.cell.get().told()),
            ("a.refcell", point.told()),
            ("a.refcell.y", "5".into()),
            ("a.mutex", a.mutex.lock().unwrap().told()),
            ("a.rwlock", point.told()),
            ("a.rwlock.x", "4".into()),
            ("a.atomic", "16".into()),
            ("a.flag", (k == 1).told()),
            ("a.rc", address(&*a.rc)),
            ("*a.rc", point.told()),
            ("a.rc.z", "-6".into()),
            ("a.rc.strong", Rc::strong_count(&a.rc).to_string()),
            ("a.named.value", "70".into()),
            ("a.named.strong", "71".into()),
            ("a.rc_text", a.rc_text.told()),
            ("len(a.rc_text)", a.rc_text.len().told()),
            ("a.arc_slice", a.arc_slice.told()),
            ("a.arc_slice[2]", a.arc_slice[2].told()),
            ("*a.shared", "15".into()),
            ("a.deep.x", "4".into()),
            ("a.pin", address(&*a.pin)),
            ("*a.pin", point.told()),
        ]);
        tell(&[
            ("a.map", a.map.len().told()),
            ("a.map.len()", a.map.len().told()),
            ("len(a.set)", "3".into()),
            ("a.tree", "20".into()),
            ("a.leaves.len()", "4".into()),
            ("a.linked", "3".into()),
            ("a.heap", format!("{:?}", a.heap.iter().collect::<Vec<_>>())),
            ("a.heap.len()", "3".into()),
            ("a.ring", format!("{:?}", a.ring)),
            ("a.ring.len()", "5".into()),
            ("a.ring.capacity()", a.ring.capacity().told()),
            ("a.ring[1]", a.ring[1].told()),
            ("a.ring[4]", a.ring[4].told()),
            ("a.no_ring", "[]".into()),
            ("a.os_string", "\"os\"".into()),
            ("a.path_buf", "\"/p/b\"".into()),
            ("a.c_string", "\"cs\"".into()),
            ("a.os_str", "\"osr\"".into()),
            ("a.path", "\"/pr\"".into()),
            ("a.c_str", "\"csr\"".into()),
            ("a.duration", format!("\"{:?}\"", a.duration)),
            ("a.short", format!("\"{:?}\"", a.short)),
            ("a.duration.secs", "3".into()),
            ("a.time", "\"2023-11-14T22:13:20.000000005Z\"".into()),
            ("a.vec", address(a.vec)),
            ("*a.vec", a.vec.told()),
            ("a.vec[1]", a.vec[1].told()),
            ("a.vec.len()", a.vec.len().told()),
            ("a.array[2]", a.array[2].told()),
            ("len(a.array)", "3".into()),
            ("*a.string", a.string.told()),
            ("a.string.len()", a.string.len().told()),
            ("a.string.capacity()", a.string.capacity().told()),
            ("a.twofold.z", "-6".into()),
            ("*a.counted", "5".into()),
            ("cap(a.spare)", a.spare.capacity().told()),
            ("a.spare.len()", "1".into()),
            ("a.nothing.len()", "2".into()),
            ("a.big", format!("\"{}\"", a.big)),
            ("a.letters", "[\"ß\", \"x\"]".into()),
        ]);
        println!("EVENT call {}", visit(&a));
    }
}
