package config

import (
	"errors"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/ledgerlake/ledgerlake/archive/sign"
)

// Keys is what anchors are signed with, and which other keys they vouch for.
type Keys struct {
	Files []string      // of private keys
	Name  string        // of KMS.Key in notes
	Life  time.Duration // of a key that KMS.Key certifies
	KMS   KMS

	// vkeys that are good, and published
	Anchor  []string
	Catalog []string
	Control []string
}

// KMS is a key of AWS KMS.
type KMS struct {
	Key      string // id, ARN or alias; "" is none
	Region   string
	Endpoint string
}

func (k *Keys) settings() []Setting {
	return []Setting{
		{
			Name: "anchor-key", Help: "Files with the private keys that sign anchors (ledgerlake-verify keygen makes them): each key signs each anchor, so that a new one can take an old one's place. Without any, anchors are unsigned, and prove nothing against who owns the bucket.",
			Value: privately(texts(&k.Files, "FILE", "the path of a file with a private key", isKeyPath)),
		},
		{
			Name: "anchor-kms-key", Help: "A key of AWS KMS (id, ARN, or alias/NAME) with KeySpec ECC_NIST_EDWARDS25519. It certifies a key that this process makes at its start and keeps in memory, and that one signs anchors. Credentials are those that the AWS SDK finds.",
			Value: text(&k.KMS.Key, "KEY", "the id, the ARN or the alias of a KMS key", isKMSKey),
		},
		{
			Name: "anchor-key-name", Help: "What the key of anchor-kms-key is called in notes: public, and part of the vkey, so never to be changed.",
			Value: text(&k.Name, "NAME", "a name without spaces and without +", func(s string) bool { return sign.CheckName(s) == nil }),
		},
		{
			Name: "anchor-key-life", Default: "168h", Help: "How long the key in memory is certified for. Another one takes its place at half of it; without KMS for the other half, anchors wait.",
			Value: duration(&k.Life, time.Hour, 10_000*time.Hour),
		},
		{Name: "kms.region", Help: "The region of anchor-kms-key. Default: the one in its ARN, or what the AWS SDK finds.", Value: text(&k.KMS.Region, "NAME", "the name of a region", notEmpty)},
		{Name: "kms.endpoint", Help: "Where KMS is, if that is not AWS.", Value: text(&k.KMS.Endpoint, "URL", "http://host:port or https://host:port", isEndpoint)},
		{
			Name: "anchor-keys", Help: "More keys whose anchors are believed, beside those of anchor-key and anchor-kms-key. Anchors say that all of them are good, which introduces a key before it signs.",
			Value: vkeys(&k.Anchor),
		},
		{Name: "catalog-keys", Help: "Keys by which catalogs are good. Anchors say so.", Value: vkeys(&k.Catalog)},
		{
			Name: "control-keys", Help: "Keys by which records of the control topic are good. Anchors say so, and a record that none of them signed is rejected.",
			Value: vkeys(&k.Control),
		},
	}
}

// vkeys is a list of verifier keys, of which files may have several.
func vkeys(p *[]string) Value {
	return privately(Value{
		Type: "VKEY|FILE,...", Allowed: "one or more of: a verifier key, as ledgerlake-verify keygen prints it (name+hash+data), or the name of a file with one on each line", list: true,
		set: func(texts []string) error {
			var keys []string
			for _, s := range texts {
				found, err := vkeysOf(s)
				if err != nil {
					return err
				}
				for _, key := range found {
					if slices.Contains(keys, key) {
						return errNotAllowed
					}
					keys = append(keys, key)
				}
			}
			*p = keys
			return nil
		},
	})
}

// vkeysOf is a verifier key, or those that stand in a file ([sign.Lines]).
func vkeysOf(s string) ([]string, error) {
	if isVKey(s) {
		return []string{s}, nil
	}
	if strings.HasPrefix(s, "PRIVATE+KEY+") {
		return nil, errNotAllowed
	}
	text, err := os.ReadFile(s)
	if err != nil {
		return nil, errNotAllowed
	}
	var keys []string
	for line := range sign.Lines(string(text)) {
		if !isVKey(line) {
			return nil, errors.New("the file that it names has a line that is no verifier key (name+hash+data)")
		}
		keys = append(keys, line)
	}
	if len(keys) == 0 {
		return nil, errors.New("there is no verifier key in the file that it names")
	}
	return keys, nil
}

func isVKey(s string) bool { return new(sign.Ring).Add(s, sign.AllRoles, "") == nil }

// privately keeps a value out of errors: somebody may have taken a private key
// for what it wants.
func privately(v Value) Value {
	v.hidden = true
	return v
}

func isKeyPath(s string) bool { return s != "" && !strings.HasPrefix(s, "PRIVATE+KEY+") }

// isKMSKey refuses what can only be a slip: KMS itself knows what a key is
// called.
func isKMSKey(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r > '~' })
}

func isEndpoint(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.User == nil &&
		strings.Trim(u.Path, "/") == "" && u.RawQuery == "" && u.Fragment == ""
}

func (k *Keys) rules(origins Origins) []rule {
	const noKMS = "has no use without anchor-kms-key"
	_, life := origins["anchor-key-life"]
	none := k.KMS.Key == ""
	return []rule{
		{!none && k.Name == "", "anchor-key-name", "not set: anchor-kms-key needs it"},
		{none && k.Name != "", "anchor-key-name", noKMS},
		{none && life, "anchor-key-life", noKMS},
		{none && k.KMS.Region != "", "kms.region", noKMS},
		{none && k.KMS.Endpoint != "", "kms.endpoint", noKMS},
	}
}
