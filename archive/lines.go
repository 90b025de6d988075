package archive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/ledgerlake/ledgerlake/archive/sign"
	"github.com/ledgerlake/ledgerlake/chain"
)

// Lines returns every line that has segments, anchors or a catalog, by topic,
// topic id and partition. Names that are too long for a key are read from a
// document of the line; the error names the lines of which none could be read,
// beside those that could. The cost is one LIST for each folder of a line.
func Lines(ctx context.Context, src Source) ([]Line, error) { return linesBelow(ctx, src, "") }

func linesBelow(ctx context.Context, src Source, below string) ([]Line, error) {
	found := map[string]Line{} // by the folders of their keys
	unnamed := map[string]error{}
	for _, folder := range []string{"catalog", "anchor", "log"} {
		if err := linesIn(ctx, src, folder, below, found, unnamed); err != nil {
			return nil, err
		}
	}
	lines := slices.SortedFunc(maps.Values(found), func(a, b Line) int {
		return cmp.Or(cmp.Compare(a.Topic, b.Topic), cmp.Compare(a.TopicID, b.TopicID), cmp.Compare(a.Partition, b.Partition))
	})
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(unnamed)) {
		faults = append(faults, unnamed[name])
	}
	return lines, errors.Join(faults...)
}

// LinesOf returns the lines of one topic, under all of its ids, as [Lines] does.
func LinesOf(ctx context.Context, src Source, topic string) ([]Line, error) {
	return linesBelow(ctx, src, chain.Escape(topic)+"/")
}

// linesIn lists the lines of a folder whose names begin with below: the first key
// of each, for all others of the line are skipped.
func linesIn(ctx context.Context, src Source, folder, below string, found map[string]Line, unnamed map[string]error) error {
	for after := ""; ; {
		key, parts, err := firstOfLine(ctx, src, folder+"/"+below, after)
		if key == "" || err != nil {
			return err
		}
		name := strings.Join(parts[1:4], "/")
		after = folder + "/" + name + "0" // behind all that begins with the line's "/"
		if _, ok := found[name]; ok {
			continue
		}
		l, err := nameLine(ctx, src, parts, key)
		switch {
		case err == nil:
			found[name] = l
			delete(unnamed, name)
		case ctx.Err() != nil:
			return ctx.Err()
		default:
			unnamed[name] = fmt.Errorf("%s: what line it is of cannot be read: %w", key, err)
		}
	}
}

// firstOfLine returns the first key after another that lies in a folder of a
// line, and its parts; "" where there is none.
func firstOfLine(ctx context.Context, src Source, prefix, after string) (key string, parts []string, err error) {
	for o, err := range src.List(ctx, prefix, after) {
		if err != nil {
			return "", nil, fmt.Errorf("list %s: %w", prefix, err)
		}
		if parts := strings.Split(o.Key, "/"); len(parts) >= 5 && isPartition(parts[3]) {
			return o.Key, parts, nil
		}
	}
	return "", nil, nil
}

func isPartition(s string) bool {
	n, err := strconv.ParseInt(s, 10, 32)
	return err == nil && n >= 0 && fmt.Sprintf("%05d", n) == s
}

// nameLine returns the line that the folders of a key are of.
func nameLine(ctx context.Context, src Source, folders []string, key string) (Line, error) {
	partition, err := strconv.ParseInt(folders[3], 10, 32)
	if err != nil {
		return Line{}, err
	}
	topic, plain := chain.Unescape(folders[1])
	id, plainID := chain.Unescape(folders[2])
	l := Line{Topic: topic, TopicID: id, Partition: int32(partition)}
	if !plain || !plainID {
		if l, err = lineOf(ctx, src, key); err != nil {
			return Line{}, err
		}
	}
	if want := strings.Join(folders[:4], "/") + "/"; linePrefix(folders[0], l) != want {
		return Line{}, errors.New("the folder is not named as a line's is")
	}
	return l, nil
}

// lineOf reads what line a document says it is of.
func lineOf(ctx context.Context, src Source, key string) (Line, error) {
	if strings.HasPrefix(key, LogPrefix) {
		seg, err := readMetadata(ctx, src, key)
		if err != nil {
			return Line{}, err
		}
		return seg.Line(), nil
	}
	body, err := src.Get(ctx, key)
	if err != nil {
		return Line{}, err
	}
	n, err := sign.Parse(body)
	if err != nil {
		return Line{}, err
	}
	if strings.HasPrefix(key, "anchor/") {
		a, err := DecodeAnchor(n.Text)
		if err != nil {
			return Line{}, err
		}
		return a.Line(), nil
	}
	c, err := DecodeCatalog(n.Text)
	if err != nil {
		return Line{}, err
	}
	return c.Line(), nil
}
