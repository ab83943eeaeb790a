// Objects of which parts are 0, and whose memory the collector gives back to the system as soon as the
// calls are over: a trace reads the events when the pages are gone.
using System;

public class Late {
    public class Holder { public string Text; public int Number; public object Other; }

    static void Told(string method, string pairs) {
        Console.WriteLine("EVENT {\"method\": \"" + method + "\", \"values\": {" + pairs + "}}");
    }

    static void Arrays() {
        var all = new Array[200000];
        for (int i = 0; i < all.Length; i++)
            all[i] = new int[0];
        Action<Array> reverse = Array.Reverse;
        Told("Array.Reverse", "\"(int[])array\": [], \"((int[])array).Length\": 0");
        reverse(all[all.Length / 2]);
    }

    static void Decimals() {
        var all = new object[200000];
        for (int i = 0; i < all.Length; i++)
            all[i] = 0m;
        Func<object, bool> equals = 1m.Equals;
        Told("Decimal.Equals", "\"(decimal)value\": \"0\", \"((Late.Holder)value).Text\": {\"type\": \"System.Decimal\"}");
        equals(all[all.Length / 2]);
    }

    static void Held() {
        var all = new Holder[200000];
        for (int i = 0; i < all.Length; i++)
            all[i] = new Holder();
        Func<object, bool> equals = Guid.Empty.Equals;
        Told("Guid.Equals", "\"((Late.Holder)o).Text\": null, \"((Late.Holder)o).Number\": 0");
        equals(all[all.Length / 2]);
    }

    public static void Main() {
        for (int i = 0; i < 3; i++) {
            foreach (Action one in new Action[] { Arrays, Decimals, Held }) {
                one();
                GC.Collect(2, (GCCollectionMode)3, true, true); // Aggressive: from .NET 7 on
            }
        }
    }
}
