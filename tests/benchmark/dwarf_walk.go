// Where members are, by a walk with debug/dwarf as generators of offset tables do it:
// dwarf_walk FILE TYPE.FIELD...
package main

import (
	"debug/dwarf"
	"debug/elf"
	"fmt"
	"os"
	"strings"
)

func main() {
	file, err := elf.Open(os.Args[1])
	if err != nil {
		panic(err)
	}
	data, err := file.DWARF()
	if err != nil {
		panic(err)
	}
	wanted := map[string][]string{}
	for _, text := range os.Args[2:] {
		at := strings.LastIndex(text, ".")
		wanted[text[:at]] = append(wanted[text[:at]], text[at+1:])
	}
	reader := data.Reader()
	for len(wanted) > 0 {
		entry, err := reader.Next()
		if err != nil || entry == nil {
			break
		}
		if entry.Tag != dwarf.TagStructType {
			continue
		}
		name, _ := entry.Val(dwarf.AttrName).(string)
		fields, found := wanted[name]
		if !found {
			continue
		}
		delete(wanted, name)
		for {
			member, err := reader.Next()
			if err != nil || member == nil || member.Tag == 0 {
				break
			}
			own, _ := member.Val(dwarf.AttrName).(string)
			for _, field := range fields {
				if own == field {
					fmt.Println(name+"."+own, member.Val(dwarf.AttrDataMemberLoc))
				}
			}
		}
	}
}
