// Types whose field offsets three runtimes were asked for: offsets are in *.tsv.xz beside this.

using System; using System.Collections.Generic; using System.Runtime.InteropServices; using System.Numerics;
#pragma warning disable 169,649,414
namespace L {
 public class C1 { byte a; int b; string s; long l; bool f; object o; short h; }
 public class Bse { byte x; }
 public class D1:Bse { int y; byte z; string s; }
 public class Bse3 { byte a,b,c; }
 public class D2:Bse3 { byte d; short e; long f; }
 public class D3:D2 { byte g; int h; object i; double j; }
 public struct S1 { public byte a; public int b; public byte c; }
 public struct S2 { public byte a; public string s; public byte b; public int c; }
 public struct S3 { public S1 x; public byte y; public S2 z; }
 public struct Empty {}
 public struct Tiny { public byte a; }
 public struct T3 { public byte a,b,c; }
 public class V1 { byte a; S1 s; string r; Tiny t; int b; T3 q; Empty e; long z; }
 public class V2 { S2 s; byte b; Guid g; DateTime d; decimal m; TimeSpan ts; int? n; long? n2; byte? n3; DateTime? nd; char c; float f; double dd; }
 [StructLayout(LayoutKind.Sequential,Pack=1)] public struct P1 { public byte a; public int b; public long c; public short d; }
 [StructLayout(LayoutKind.Sequential,Pack=2,Size=32)] public struct P2 { public byte a; public int b; public long c; }
 [StructLayout(LayoutKind.Explicit,Size=24)] public struct X1 { [FieldOffset(0)]public int a; [FieldOffset(4)] public byte b; [FieldOffset(8)] public double c; [FieldOffset(8)] public long d; [FieldOffset(17)] public byte e; }
 [StructLayout(LayoutKind.Explicit)] public class XC { [FieldOffset(0)] int a; [FieldOffset(4)] int b; [FieldOffset(8)] object o; }
 [StructLayout(LayoutKind.Sequential)] public class SC { byte a; int b; byte c; long d; }
 [StructLayout(LayoutKind.Sequential)] public class SC2 { byte a; string b; byte c; long d; }
 [StructLayout(LayoutKind.Sequential)] public class SCD:SC { byte e; int f; }
 [StructLayout(LayoutKind.Sequential,Pack=1)] public class SCP { byte a; int b; byte c; long d; }
 [StructLayout(LayoutKind.Auto)] public struct A1 { public byte a; public long b; public byte c; public int d; public string s; }
 [StructLayout(LayoutKind.Auto)] public struct A2 { public byte a; public short b; public byte c; }
 public struct H1 { public byte a; public A1 x; public byte b; }
 public struct H2 { public byte a; public A2 x; public int b; }
 public struct H3 { public byte a; public DateTime d; public byte b; public int c; }
 public struct H4 { public byte a; public int? d; public byte b; public int c; }
 public struct H5 { public byte a; public Guid d; public byte b; public decimal c; }
 public enum E1:byte {A} public enum E8:long {A} public enum E4 {A}
 public class En { E1 a; E8 b; E4 c; E1 d; string s; }
 public struct SEn { E1 a; E8 b; E4 c; }
 public class Auto { public string Name {get;set;} public int Age {get;set;} public bool Ok {get;} public List<string> Tags {get;set;} public static int Stat {get;set;} }
 public class Gen<T> { byte a; T v; int b; T[] arr; }
 public class Gen2<K,V> { K k; V v; byte b; KeyValuePair<K,V> p; }
 public struct GS<T> { public byte a; public T v; public byte b; }
 public class DerG:Gen<int> { byte q; short w; }
 public class DerG2<T>:Gen<T> { byte q; T w; }
 public unsafe class Ptrs { byte* p; byte a; IntPtr ip; UIntPtr up; void** pp; object o; }
 public unsafe struct Fix { public byte a; public fixed int f[5]; public byte b; }
 public class Fl { float a; double b; float c; byte d; char e; sbyte f; ushort g; }
 public ref struct RS { public byte a; public Span<byte> s; public int b; }
 public ref struct RS2 { public ReadOnlySpan<char> s; public byte a; public string t; }
 public class Nest { public class In { byte a; string b; public struct Deep { public byte a; public long b; } Deep d; } In i; byte z; }
 public class Mem { Memory<byte> m; ReadOnlyMemory<char> r; ArraySegment<int> g; byte b; ValueTuple<int,byte> vt; (byte,string,int) v3; }
 public class Vec { byte a; Vector2 v2; Vector3 v3; Vector4 v4; Matrix3x2 m; Vector<int> vi; Complex c; }
 public class Ev { public event EventHandler X; public Action<int> A; public Func<string> F; byte b; }
 public class Cap { byte a; decimal d; byte b; Guid g; byte c; int i; }
 public class Three { byte a; short b; byte c; int d; byte e; }
 public class ThreeD:Three { short f; byte g; int h; long i; string j; }
 public class OnlyVT { Tiny a; Tiny b; T3 c; S1 d; }
 public struct Big { public long a,b,c,d,e; public byte f; }
 public class HasBig { byte a; Big b; byte c; object o; }
 public struct Mix { public string s; public Tiny t; public int i; public byte b; }
 public class HasMix { byte a; Mix m; byte b; }
 public struct NestAuto { public H1 h; public byte b; }
 public struct Ch { public char c; public bool b; public byte d; }
 public struct IP { public byte a; public IntPtr p; public byte b; }
 public struct PS { public byte a; public P1 p; public short b; }
 public class PSC { byte a; P1 p; short b; P2 q; X1 x; }
 public abstract class Abs { protected int id; public abstract void F(); }
 public class Con:Abs,IDisposable { string nm; byte k; public override void F(){} public void Dispose(){} }
 public class Exc:Exception { int code; string extra; byte b; }
 public class TrdD:System.IO.MemoryStream { byte b; int c; string s; }
 public class Attr:Attribute { byte b; string s; }
 public class EA:EventArgs { byte b; string s; int i; }
}
