package archive

import (
	"fmt"
	"strings"

	"github.com/ledgerlake/ledgerlake/chain"
)

// The places of what a compactor keeps for engines of SQL. It is no evidence,
// and verification leaves it alone.
const (
	SQLPrefix      = "sql/"
	ManifestPrefix = "sql/rows/" // of manifests
	// ManifestProbe is the key by which a compactor probes whether a store changes
	// objects by compare-and-swap.
	ManifestProbe = "sql/probe.json"
)

// ManifestFolder returns the prefix of all manifests of a tenant.
func ManifestFolder(tenant string) string {
	return ManifestPrefix + "tenant=" + chain.Escape(tenant) + "/"
}

// ManifestKey returns the key of the manifest of a tenant's log in a line: a text
// of one object's address a line, in the form that Hive's SymlinkTextInputFormat
// reads. The name begins with a word, for engines of Hive's kind hide files whose
// names begin with "_", as an id of a topic may.
func ManifestKey(l Line, tenant string) string {
	return fmt.Sprintf("%sline.%s.%05d.symlink", ManifestFolder(tenant), chain.Escape(l.TopicID), l.Partition)
}

// ManifestStateKey returns the key of what says which version of a line's catalog
// its manifests follow.
func ManifestStateKey(l Line) string {
	return strings.TrimSuffix(linePrefix("sql/lines", l), "/") + ".json"
}

// IsManifest reports whether a key is, byte for byte, one that [ManifestKey] or
// [ManifestStateKey] makes, or [ManifestProbe].
func IsManifest(key string) bool {
	parts := strings.Split(key, "/")
	switch {
	case key == ManifestProbe:
		return true
	case len(parts) == 4 && strings.HasPrefix(key, ManifestPrefix+"tenant="):
		rest, ok := strings.CutPrefix(parts[3], "line.")
		rest, symlink := strings.CutSuffix(rest, ".symlink")
		dot := strings.LastIndexByte(rest, '.')
		return ok && symlink && dot > 0 && isPartition(rest[dot+1:]) && parts[2] != "tenant="
	case len(parts) == 5 && parts[0] == "sql" && parts[1] == "lines":
		number, ok := strings.CutSuffix(parts[4], ".json")
		return ok && parts[2] != "" && parts[3] != "" && isPartition(number)
	}
	return false
}
