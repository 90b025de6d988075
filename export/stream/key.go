package stream

import (
	"fmt"
	"strings"

	"github.com/ledgerlake/ledgerlake/archive"
	"github.com/ledgerlake/ledgerlake/chain"
)

// Prefix is the prefix of all that exporters write.
const Prefix = "export/"

// destinationPrefix returns the prefix of what belongs to a destination.
func destinationPrefix(name string) string { return Prefix + chain.Escape(name) + "/" }

func stateKey(name string) string { return destinationPrefix(name) + "destination.json" }

func leaseKey(name string) string { return destinationPrefix(name) + "lease.json" }

// folderOf returns where a destination, or a backfill of it, keeps its cursors.
func folderOf(name, job string) string {
	if job == "" {
		return destinationPrefix(name) + "cursor/"
	}
	return destinationPrefix(name) + "backfill/" + job + "/cursor/"
}

// cursorKey returns the key of the cursors of a line.
func cursorKey(name, job string, l archive.Line) string {
	return folderOf(name, job) + lineFolder(l) + ".json"
}

func lineFolder(l archive.Line) string {
	return fmt.Sprintf("%s/%s/%05d", chain.Escape(l.Topic), chain.Escape(l.TopicID), l.Partition)
}

func jobKey(name, job string) string { return destinationPrefix(name) + "backfill/" + job + ".json" }

// parseJobKey returns the id of a backfill.
func parseJobKey(name, key string) (job string, ok bool) {
	rest, ok := strings.CutPrefix(key, destinationPrefix(name)+"backfill/")
	job, isDoc := strings.CutSuffix(rest, ".json")
	return job, ok && isDoc && !strings.Contains(job, "/")
}

func deadPrefix(name string) string { return destinationPrefix(name) + "dead/" }

func deadKey(name string, l archive.Line, id chain.Hash) string {
	return deadPrefix(name) + lineFolder(l) + "/" + id.String() + ".json"
}

// replayedKey returns the key that says that a dead letter was sent again.
func replayedKey(name, dead string) string {
	return destinationPrefix(name) + "replayed/" + strings.TrimPrefix(dead, deadPrefix(name))
}
