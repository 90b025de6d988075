package main

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/ledgerlake/ledgerlake/archive/sign"
)

const keygenHelp = `ledgerlake-verify keygen makes an Ed25519 key that signs notes: anchors, catalogs, records of the control topic.

  ledgerlake-verify keygen --name NAME --out FILE
  ledgerlake-verify keygen --vkey FILE
  ledgerlake-verify keygen --name NAME --public FILE

The private key goes to FILE, which only its owner may read and which must not be there yet. The public one, the vkey,
is printed: give it to whoever verifies, and keep it where the owner of the bucket cannot change it. docs/keys.md says
how keys are used, and how one takes the place of another.

  ledgerlake-verify keygen --name example.org/anchors-2026 --out anchors-2026.key > anchors-2026.vkey
  ledgerlake-ingest run --anchor-key anchors-2026.key …
  ledgerlake-verify --key anchors-2026.vkey ./data/audit

Exit codes: 0 done; 2 nothing was done.

Flags:
  --name NAME
        What the key is called in every note that it signs: without spaces and without +, for instance a host name of
        yours, a slash, the purpose and the year. The name is public, and part of the key: it cannot be changed.
  --out FILE
        Where the private key goes; - prints it on stdout, and the vkey on stderr.
  --vkey FILE
        Print the vkey of the private key in FILE; nothing is made.
  --public FILE
        Print the vkey of the public key in FILE under --name; nothing is made. It is an Ed25519 key as PEM, DER, or
        the base64 text that aws kms get-public-key --query PublicKey --output text prints.
`

// A keygenInvocation is what the arguments of keygen ask for.
type keygenInvocation struct {
	name, out, of, public string
}

// keygen makes a key, or prints the public half of one that is there.
func keygen(_ context.Context, c call) (int, error) {
	in, err := parseKeygen(c.args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		_, err = io.WriteString(c.stdout, keygenHelp)
	case err == nil && in.of != "":
		err = printVKey(c.stdout, in.of)
	case err == nil && in.public != "":
		err = in.printPublic(c.stdout)
	case err == nil:
		err = in.generate(c.stdout, c.stderr)
	}
	if err != nil {
		return exitCannotRun, err
	}
	return 0, nil
}

func parseKeygen(args []string) (*keygenInvocation, error) {
	in := &keygenInvocation{}
	f := flag.NewFlagSet("keygen", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&in.name, "name", "", "")
	f.StringVar(&in.out, "out", "", "")
	f.StringVar(&in.of, "vkey", "", "")
	f.StringVar(&in.public, "public", "", "")
	err := f.Parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%w: %w; keygen --help says more", errUsage, err)
	case f.NArg() > 0 || !in.isOne():
		return nil, fmt.Errorf("%w: want keygen --name NAME --out FILE, keygen --vkey FILE, or keygen --name NAME --public FILE", errUsage)
	}
	return in, nil
}

// isOne reports whether one of the three things is asked for, and all that it
// takes is there.
func (in *keygenInvocation) isOne() bool {
	things := 0
	for _, file := range []string{in.out, in.of, in.public} {
		if file != "" {
			things++
		}
	}
	return things == 1 && (in.name == "") == (in.of != "")
}

// generate makes a key. It prints the private half only where it was asked to.
func (in *keygenInvocation) generate(stdout, stderr io.Writer) error {
	skey, vkey, err := sign.Generate(rand.Reader, in.name)
	if err != nil {
		return err
	}
	if in.out == "-" {
		if _, err := fmt.Fprintln(stderr, vkey); err != nil {
			return err
		}
		_, err := fmt.Fprintln(stdout, skey)
		return err
	}
	if err := createPrivate(in.out, skey+"\n"); err != nil {
		return err
	}
	_, err = fmt.Fprintln(stdout, vkey)
	return err
}

// createPrivate writes a file that only its owner may read. It changes none that
// is there, and leaves none that is not whole.
func createPrivate(name, text string) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("%s is there already: keys are not overwritten; give another --out", name)
	}
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, text)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(name))
	}
	return nil
}

func printVKey(stdout io.Writer, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	s, err := sign.NewSigner(string(text))
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	_, err = fmt.Fprintln(stdout, s.VKey())
	return err
}

// printPublic prints the vkey of a key whose private half is elsewhere.
func (in *keygenInvocation) printPublic(stdout io.Writer) error {
	if err := sign.CheckName(in.name); err != nil {
		return err
	}
	text, err := os.ReadFile(in.public)
	if err != nil {
		return err
	}
	key, err := x509.ParsePKIXPublicKey(derOf(text))
	if err != nil {
		return fmt.Errorf("%s: %w", in.public, err)
	}
	public, ok := key.(ed25519.PublicKey)
	if !ok {
		return fmt.Errorf("%s: it is not an Ed25519 key", in.public)
	}
	_, err = fmt.Fprintln(stdout, sign.VKey(in.name, public))
	return err
}

// derOf returns the DER in a text that is PEM, base64 of it, or DER itself.
func derOf(text []byte) []byte {
	if block, _ := pem.Decode(text); block != nil {
		return block.Bytes
	}
	if der, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(text))); err == nil {
		return der
	}
	return text
}
