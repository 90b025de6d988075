package chain

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A suite that cannot fail proves nothing. TestEveryValueOfTheVectorsCounts
// changes each value of the file, one at a time and in several ways, takes each
// member and element away and adds unknown ones, and requires that the suite
// notices every time.
func TestEveryValueOfTheVectorsCounts(t *testing.T) {
	t.Parallel()
	tree, err := jsonTree(vectorsBytes(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := checkTree(t, tree); err != nil {
		t.Fatal("nothing changed: ", err)
	}
	changes := 0
	eachChange("", tree, func(any) { t.Fatal("the root is not replaced") }, func(path, change string) {
		changes++
		if checkTree(t, tree) == nil {
			t.Errorf("%s: %s: still passes", path, change)
		}
	})
	if err := checkTree(t, tree); err != nil {
		t.Fatal("changes were not taken back: ", err)
	}
	t.Logf("%d changes", changes)
}

// What a tree of JSON cannot hold is written into the text: members that are
// there twice, bytes that are no UTF-8, a second value.
func TestVectorsAreReadStrictly(t *testing.T) {
	data := string(vectorsBytes(t))
	for name, text := range map[string]string{
		"member twice":        strings.Replace(data, `"format"`, `"format": "ledgerlake-v1", "format"`, 1),
		"member twice, inner": strings.Replace(data, `"epoch"`, `"epoch": 0, "epoch"`, 1),
		"residual twice":      strings.Replace(data, `"commits"`, `"commits": {}, "commits"`, 1),
		"case of a name":      strings.Replace(data, `"format"`, `"Format"`, 1),
		"fraction":            strings.Replace(data, `"epoch": 0`, `"epoch": 0.0`, 1),
		"exponent":            strings.Replace(data, `"epoch": 0`, `"epoch": 0e1`, 1),
		"no UTF-8":            strings.Replace(data, "acme", "acm\xff", 1),
		"second value":        data + "{}",
		"cut short":           data[:len(data)-3],
		"empty":               "",
		"null":                "null",
	} {
		t.Run(name, func(t *testing.T) {
			if text == data {
				t.Fatal("nothing changed")
			}
			if checkVectors([]byte(text)) == nil {
				t.Error("still passes")
			}
		})
	}
}

func checkTree(t *testing.T, tree any) error {
	data, err := json.Marshal(tree)
	if err != nil {
		t.Fatal(err)
	}
	return checkVectors(data)
}

// caseLists are lists of cases that do not depend on each other. A shorter or
// longer one is another file that is right, so that only an empty one counts.
var caseLists = []string{".encode", ".escape", ".residuals", ".trees.sizes", ".trees.inclusion", ".trees.consistency"}

// eachChange makes every change to node and below, calls try after each, and
// takes it back. set puts another value in node's place.
func eachChange(path string, node any, set func(any), try func(path, change string)) {
	replace := func(change string, value any) {
		set(value)
		try(path, change)
		set(node)
	}
	switch node := node.(type) {
	case map[string]any:
		eachMemberChange(path, node, try)
	case []any:
		eachElementChange(path, node, replace, try)
		for i, element := range node {
			eachChange(fmt.Sprintf("%s[%d]", path, i), element, func(v any) { node[i] = v }, try)
		}
	case string:
		eachStringChange(node, replace)
	case json.Number:
		n, _ := node.Int64()
		replace("plus one", json.Number(strconv.FormatInt(n+1, 10)))
		replace("minus one", json.Number(strconv.FormatInt(n-1, 10)))
		replace("far away", json.Number("9007199254740993"))
		replace("as a string", string(node))
		replace("null", nil)
	case nil:
		replace("a string", "x")
		replace("a number", json.Number("0"))
	}
}

func eachMemberChange(path string, node map[string]any, try func(path, change string)) {
	for _, name := range slices.Sorted(maps.Keys(node)) {
		was := node[name]
		delete(node, name)
		try(path, "without "+name)
		node[name] = was
		eachChange(path+"."+name, was, func(v any) { node[name] = v }, try)
	}
	node["unknown"] = nil
	try(path, "an unknown member")
	delete(node, "unknown")
}

func eachElementChange(path string, node []any, replace func(string, any), try func(path, change string)) {
	if len(node) > 0 {
		replace("emptied", []any{})
	}
	replace("null", nil)
	replace("one more of another type", append(slices.Clone(node), "x"))
	if slices.Contains(caseLists, path) {
		return
	}
	replace("one more hash", append(slices.Clone(node), strings.Repeat("0", 64)))
	if len(node) > 0 {
		replace("one twice", append(slices.Clone(node), node[0]))
	}
	for i := range node {
		if path == ".hmac.rows" && i == len(node)-1 {
			continue // a shorter log is a log
		}
		replace(fmt.Sprintf("without element %d", i), slices.Delete(slices.Clone(node), i, i+1))
	}
	if len(node) > 1 {
		swapped := slices.Clone(node)
		swapped[0], swapped[1] = swapped[1], swapped[0]
		if !strings.HasSuffix(path, ".erased") { // a set
			replace("swapped", swapped)
		}
	}
}

func eachStringChange(node string, replace func(string, any)) {
	replace("one more zero", "0"+node)
	replace("null", nil)
	if upper := strings.ToUpper(node); upper != node {
		replace("upper case", upper)
	}
	if node != "" {
		replace("last byte", node[:len(node)-1]+string(node[len(node)-1]^1&127))
	}
}
