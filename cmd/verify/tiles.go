package main

import (
	"context"
	"fmt"

	"github.com/ledgerlake/ledgerlake/proof"
)

const tilesHelp = `ledgerlake-verify tiles writes the tree of a log as C2SP tlog-tiles (256 hashes a tile) to a folder outside the archive, and extends it
when it is run again. Public clients and witnesses can follow a log by them, and 'prove --newest' reads less.

  ledgerlake-verify tiles [flags] --tenant NAME TARGET DIR

DIR gets checkpoint and tile/L/N; what is there is checked, and the archive must continue it. The newest checkpoint that anchors hold is
written last. With --key it must be signed by that key, or one that it introduces.

Exit codes: 0 written · 1 what is stored does not fit together, or does not continue the folder · 2 cannot run · 3 no such log

Flags:
  --tenant NAME, --topic NAME, --partition N
        Whose log. Topic and partition are needed where the tenant has more than one.
  --key VKEY|FILE
        A public key that anchors are signed by, or a file with one on each line. May be given more than once.

`

func tiles(ctx context.Context, c call) (int, error) {
	s := newSeeker("tiles")
	rest, err := s.Parse(c.args)
	if err != nil {
		return showHelp(c, tilesHelp, err)
	}
	if len(rest) != 2 || s.want.Tenant == "" {
		return exitCannotRun, fmt.Errorf("%w: want --tenant, a bucket URL or folder, and a folder for the tiles; --help says more", errUsage)
	}
	p, closeSource, err := s.prover(ctx, rest[0], c)
	if err != nil {
		return outcome(c, err)
	}
	defer closeSource()
	r, err := p.WriteTiles(ctx, s.want, tileFolder(rest[1]))
	if err != nil {
		return outcome(c, err)
	}
	_, err = fmt.Fprintf(c.stdout, "tiles of the log of tenant %s in %s/%d: %d rows, of them %d new; checkpoint of anchor %d%s\n",
		proof.Printable(r.Log.Tenant), proof.Printable(r.Log.Topic), r.Log.Partition, r.Size, r.Size-r.From, r.Anchor, signedNote(r.SignedBy, s.keys.Empty()))
	return 0, err
}

func signedNote(by []string, noKey bool) string {
	if noKey {
		return "; no key was given to check its signature with"
	}
	return fmt.Sprintf(", signed by %s", proof.Count(int64(len(by)), "good key"))
}
