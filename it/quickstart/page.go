//go:build it

// Package quickstart tests docs/quickstart.md as a newcomer would: it pastes
// each block into one shell, in order, and requires of each what the page says.
// On the way it tries the producers in examples/ in other languages.
//
// The clone that the page begins with is one of this repository as it was
// committed. Ports alone are others than on the page, so that the test runs
// beside anything.
package quickstart

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// A block is what a page has between ```sh and ```, with what the comments
// above it say of it. A person does not see the comments.
//
//	<!-- until TEXT -->   it only reads, and is repeated until it prints TEXT
//	<!-- shows TEXT -->   it prints TEXT
//	<!-- exit N -->       it ends with N, and not with 0
type block struct {
	section  string // the heading above it
	commands string
	until    string
	shows    string
	exit     int
}

var (
	blockPattern = regexp.MustCompile("(?m)((?:^<!-- .* -->\n)*)^```sh\n((?:.*\n)*?)^```$")
	notePattern  = regexp.MustCompile(`(?m)^<!-- (\S+) (.*) -->$`)
)

// blocks returns those of a page, in order.
func blocks(page string) ([]block, error) {
	var all []block
	for _, at := range blockPattern.FindAllStringSubmatchIndex(page, -1) {
		b := block{section: heading(page[:at[0]]), commands: page[at[4]:at[5]]}
		for _, note := range notePattern.FindAllStringSubmatch(page[at[2]:at[3]], -1) {
			if err := b.note(note[1], note[2]); err != nil {
				return nil, err
			}
		}
		all = append(all, b)
	}
	if n := strings.Count(page, "\n```sh\n"); n != len(all) {
		return nil, fmt.Errorf("%d blocks found of %d", len(all), n)
	}
	return all, nil
}

// heading returns the last one of a text.
func heading(text string) string {
	_, last, _ := strings.Cut(text[strings.LastIndex(text, "\n## ")+1:], "## ")
	line, _, _ := strings.Cut(last, "\n")
	return line
}

func (b *block) note(name, value string) (err error) {
	switch name {
	case "until":
		b.until = value
	case "shows":
		b.shows = value
	case "exit":
		b.exit, err = strconv.Atoi(value)
	default:
		return fmt.Errorf("a comment above a block says %q", name)
	}
	return err
}
