// At work in methods of its own and of the class library, until its input ends.
using System;
using System.Collections.Generic;
using System.Runtime.CompilerServices;
using System.Threading;

public class Busy {
    static bool ended;

    [MethodImpl(MethodImplOptions.NoInlining)]
    static int Work(int rounds) {
        var texts = new List<string>();
        int bytes = 0;
        for (int i = 0; i < rounds; i++) {
            texts.Add("text " + i);
            bytes += Convert.FromBase64String("aGVsbG8gd29ybGQgaGVsbG8gd29ybGQ=").Length;
        }
        texts.Sort(string.CompareOrdinal);
        return bytes + texts.Count;
    }

    public static int Main() {
        long sum = Work(10);
        new Thread(() => { Console.In.ReadLine(); ended = true; }) { IsBackground = true }.Start();
        Console.WriteLine("ready");
        while (!Volatile.Read(ref ended)) sum += Work(1000);
        return sum == 0 ? 1 : 0;
    }
}
