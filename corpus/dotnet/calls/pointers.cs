// With an argument: where the code of a few methods of the class library is, which a map of that
// library would say. Without: calls of one of them, and the values that a trace has to show.
using System;
using System.Reflection;
using System.Runtime.CompilerServices;

public class Pointers {
    static void Tell(MethodInfo method, string signature) {
        RuntimeHelpers.PrepareMethod(method.MethodHandle);
        long code = method.MethodHandle.GetFunctionPointer().ToInt64();
        Console.WriteLine("CODE " + code.ToString("x") + " " + method.DeclaringType.FullName + "::" + signature);
    }

    static void TellAll() {
        Tell(typeof(string).GetMethod("IsNullOrWhiteSpace"), "IsNullOrWhiteSpace(string)");
        Tell(typeof(Convert).GetMethod("FromBase64String"), "FromBase64String(string)");
        Type[] types = { typeof(string), typeof(Version).MakeByRefType() };
        Tell(typeof(Version).GetMethod("TryParse", types), "TryParse(string,class System.Version&)");
        foreach (string line in System.IO.File.ReadAllLines("/proc/self/maps"))
            if (line.Contains("System.Private.CoreLib")) Console.WriteLine("MAP " + line);
    }

    public static int Main(string[] args) {
        if (args.Length > 0) {
            TellAll();
            return 0;
        }
        foreach (string text in new[] { "aGVsbG8=", "", "d29ybGQgaGVsbG8gd29ybGQ=" }) {
            Console.WriteLine("EVENT " + text);
            Convert.FromBase64String(text);
        }
        return 0;
    }
}
