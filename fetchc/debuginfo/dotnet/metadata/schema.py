"""The tables of .NET metadata: which columns each has, and what its coded columns point at.

Columns: ``2`` and ``4`` are numbers of that many bytes, ``S`` a name, ``G`` a GUID, ``B`` a blob,
``@T`` a row of table T, any other word a coded index. Source: ECMA-335, partition II, sections 22
and 24.2.6; the last eight are of the portable PDB format (dotnet/runtime, PortablePdb-Metadata.md).
"""

from __future__ import annotations

__all__ = ["CODED", "TABLES"]

TABLES = {
    0x00: ("Module", "2 S G G G"),
    0x01: ("TypeRef", "ResolutionScope S S"),
    0x02: ("TypeDef", "4 S S TypeDefOrRef @Field @MethodDef"),
    0x03: ("FieldPtr", "@Field"),
    0x04: ("Field", "2 S B"),
    0x05: ("MethodPtr", "@MethodDef"),
    0x06: ("MethodDef", "4 2 2 S B @Param"),
    0x07: ("ParamPtr", "@Param"),
    0x08: ("Param", "2 2 S"),
    0x09: ("InterfaceImpl", "@TypeDef TypeDefOrRef"),
    0x0A: ("MemberRef", "MemberRefParent S B"),
    0x0B: ("Constant", "2 HasConstant B"),
    0x0C: ("CustomAttribute", "HasCustomAttribute CustomAttributeType B"),
    0x0D: ("FieldMarshal", "HasFieldMarshal B"),
    0x0E: ("DeclSecurity", "2 HasDeclSecurity B"),
    0x0F: ("ClassLayout", "2 4 @TypeDef"),
    0x10: ("FieldLayout", "4 @Field"),
    0x11: ("StandAloneSig", "B"),
    0x12: ("EventMap", "@TypeDef @Event"),
    0x13: ("EventPtr", "@Event"),
    0x14: ("Event", "2 S TypeDefOrRef"),
    0x15: ("PropertyMap", "@TypeDef @Property"),
    0x16: ("PropertyPtr", "@Property"),
    0x17: ("Property", "2 S B"),
    0x18: ("MethodSemantics", "2 @MethodDef HasSemantics"),
    0x19: ("MethodImpl", "@TypeDef MethodDefOrRef MethodDefOrRef"),
    0x1A: ("ModuleRef", "S"),
    0x1B: ("TypeSpec", "B"),
    0x1C: ("ImplMap", "2 MemberForwarded S @ModuleRef"),
    0x1D: ("FieldRVA", "4 @Field"),
    0x1E: ("EncLog", "4 4"),
    0x1F: ("EncMap", "4"),
    0x20: ("Assembly", "4 2 2 2 2 4 B S S"),
    0x21: ("AssemblyProcessor", "4"),
    0x22: ("AssemblyOS", "4 4 4"),
    0x23: ("AssemblyRef", "2 2 2 2 4 B S S B"),
    0x24: ("AssemblyRefProcessor", "4 @AssemblyRef"),
    0x25: ("AssemblyRefOS", "4 4 4 @AssemblyRef"),
    0x26: ("File", "4 S B"),
    0x27: ("ExportedType", "4 4 S S Implementation"),
    0x28: ("ManifestResource", "4 4 S Implementation"),
    0x29: ("NestedClass", "@TypeDef @TypeDef"),
    0x2A: ("GenericParam", "2 2 TypeOrMethodDef S"),
    0x2B: ("MethodSpec", "MethodDefOrRef B"),
    0x2C: ("GenericParamConstraint", "@GenericParam TypeDefOrRef"),
    0x30: ("Document", "B G B G"),
    0x31: ("MethodDebugInformation", "@Document B"),
    0x32: ("LocalScope", "@MethodDef @ImportScope @LocalVariable @LocalConstant 4 4"),
    0x33: ("LocalVariable", "2 2 S"),
    0x34: ("LocalConstant", "S B"),
    0x35: ("ImportScope", "@ImportScope B"),
    0x36: ("StateMachineMethod", "@MethodDef @MethodDef"),
    0x37: ("CustomDebugInformation", "HasCustomDebugInformation G B"),
}

_ATTRIBUTED = (
    "MethodDef Field TypeRef TypeDef Param InterfaceImpl MemberRef Module DeclSecurity Property "
    "Event StandAloneSig ModuleRef TypeSpec Assembly AssemblyRef File ExportedType "
    "ManifestResource GenericParam GenericParamConstraint MethodSpec"
)

# Name -> bits of the tag, tables by tag; `-` is a tag that is not used.
CODED = {
    name: (bits, tuple(tables.split()))
    for name, bits, tables in (
        ("TypeDefOrRef", 2, "TypeDef TypeRef TypeSpec"),
        ("HasConstant", 2, "Field Param Property"),
        ("HasCustomAttribute", 5, _ATTRIBUTED),
        ("HasFieldMarshal", 1, "Field Param"),
        ("HasDeclSecurity", 2, "TypeDef MethodDef Assembly"),
        ("MemberRefParent", 3, "TypeDef TypeRef ModuleRef MethodDef TypeSpec"),
        ("HasSemantics", 1, "Event Property"),
        ("MethodDefOrRef", 1, "MethodDef MemberRef"),
        ("MemberForwarded", 1, "Field MethodDef"),
        ("Implementation", 2, "File AssemblyRef ExportedType"),
        ("CustomAttributeType", 3, "- - MethodDef MemberRef -"),
        ("ResolutionScope", 2, "Module ModuleRef AssemblyRef TypeRef"),
        ("TypeOrMethodDef", 1, "TypeDef MethodDef"),
        (
            "HasCustomDebugInformation",
            5,
            f"{_ATTRIBUTED} Document LocalScope LocalVariable LocalConstant ImportScope",
        ),
    )
}
