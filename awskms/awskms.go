// Package awskms signs notes with a key that AWS KMS keeps.
//
// The key is of the kind ECC_NIST_EDWARDS25519 and signs by ED25519_SHA_512 over
// the message itself (MessageType RAW): what comes out is the Ed25519 signature
// of RFC 8032 that every verifier of notes knows. A key of another kind is
// refused at [Open]. KMS signs at most 4,096 bytes; the text of an anchor may be
// longer, and is signed each minute in each partition: so a KMS key signs key
// notes (package archive/sign), and the keys that those certify sign anchors.
//
// Which key an alias stands for is asked once: an alias that is moved while a
// process runs changes nothing for it. No private key and no credential is ever
// in an error. The package does not log, and makes no key.
package awskms

import (
	"context"
	"crypto/ed25519"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/kms/types"

	"github.com/ledgerlake/ledgerlake/archive/sign"
)

// MaxMessage is how long a message may be that KMS signs, in bytes.
const MaxMessage = 4096

var (
	// ErrUnfit: the key is there and cannot sign notes: another key is needed.
	ErrUnfit = errors.New("KMS key is unfit: want a key with KeyUsage SIGN_VERIFY and KeySpec ECC_NIST_EDWARDS25519")
	// ErrTooLong: a message is longer than [MaxMessage].
	ErrTooLong = errors.New("message is longer than the 4,096 bytes that KMS signs")
	// ErrForged: what came back as a signature is none by the key.
	ErrForged = errors.New("KMS answered with a signature that is not by its key")
)

// A Key is one key of KMS under the name that it has in notes. It implements
// note.Signer, and may be used by several goroutines.
type Key struct {
	name    string
	arn     string
	public  ed25519.PublicKey
	client  *kms.Client
	timeout time.Duration
}

// Open asks KMS for the public key of keyID: an id, an ARN, or an alias with its
// "alias/". An error matches [ErrUnfit] where no other attempt can help, and
// [sign.ErrKey] where the name cannot be one.
func Open(ctx context.Context, keyID string, o Options) (*Key, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if err := sign.CheckName(o.Name); err != nil {
		return nil, err
	}
	if o.Region == "" {
		o.Region = regionOf(keyID)
	}
	client, err := o.connect(ctx)
	if err != nil {
		return nil, err
	}
	k := &Key{name: o.Name, client: client, timeout: o.timeout()}
	ctx, cancel := context.WithTimeout(ctx, k.timeout)
	defer cancel()
	out, err := client.GetPublicKey(ctx, &kms.GetPublicKeyInput{KeyId: &keyID})
	if err != nil {
		return nil, failed("get public key of "+keyID, err)
	}
	if k.public, err = publicKey(out); err != nil {
		return nil, fmt.Errorf("%s: %w", keyID, err)
	}
	k.arn = aws.ToString(out.KeyId)
	return k, nil
}

// regionOf returns the region that an ARN names, and "" for what is no ARN.
func regionOf(keyID string) string {
	if parts := strings.SplitN(keyID, ":", 5); len(parts) == 5 && parts[0] == "arn" && parts[2] == "kms" {
		return parts[3]
	}
	return ""
}

// publicKey returns the key, if it is one that signs notes.
func publicKey(out *kms.GetPublicKeyOutput) (ed25519.PublicKey, error) {
	switch {
	case out.KeySpec != types.KeySpecEccNistEdwards25519:
		return nil, fmt.Errorf("%w; its KeySpec is %q", ErrUnfit, out.KeySpec)
	case out.KeyUsage != types.KeyUsageTypeSignVerify:
		return nil, fmt.Errorf("%w; its KeyUsage is %q", ErrUnfit, out.KeyUsage)
	case !slices.Contains(out.SigningAlgorithms, types.SigningAlgorithmSpecEd25519Sha512):
		return nil, fmt.Errorf("%w; it does not offer ED25519_SHA_512", ErrUnfit)
	case aws.ToString(out.KeyId) == "":
		return nil, fmt.Errorf("%w; the answer does not name it", ErrUnfit)
	}
	key, err := x509.ParsePKIXPublicKey(out.PublicKey)
	if err != nil {
		return nil, fmt.Errorf("%w; its public key cannot be read: %w", ErrUnfit, err)
	}
	public, ok := key.(ed25519.PublicKey)
	if !ok {
		return nil, fmt.Errorf("%w; its public key is not Ed25519", ErrUnfit)
	}
	return public, nil
}

// Name returns the key's name in notes.
func (k *Key) Name() string { return k.name }

// KeyHash returns the hash by which signature lines name the key.
func (k *Key) KeyHash() uint32 { return sign.KeyHash(k.name, k.public) }

// VKey returns the verifier key.
func (k *Key) VKey() string { return sign.VKey(k.name, k.public) }

// ARN returns what KMS calls the key.
func (k *Key) ARN() string { return k.arn }

// Sign has KMS sign msg, and checks what it gives. It takes Options.Timeout at
// most. An error matches [ErrTooLong] or [ErrForged], or came from KMS.
func (k *Key) Sign(msg []byte) ([]byte, error) {
	return k.SignContext(context.Background(), msg)
}

// SignContext is Sign until ctx is done.
func (k *Key) SignContext(ctx context.Context, msg []byte) ([]byte, error) {
	if len(msg) > MaxMessage {
		return nil, fmt.Errorf("%w: %d bytes", ErrTooLong, len(msg))
	}
	ctx, cancel := context.WithTimeout(ctx, k.timeout)
	defer cancel()
	out, err := k.client.Sign(ctx, &kms.SignInput{
		KeyId: &k.arn, Message: msg,
		MessageType:      types.MessageTypeRaw,
		SigningAlgorithm: types.SigningAlgorithmSpecEd25519Sha512,
	})
	if err != nil {
		return nil, failed("sign by "+k.arn, err)
	}
	if !ed25519.Verify(k.public, msg, out.Signature) {
		return nil, fmt.Errorf("%w: %s", ErrForged, k.arn)
	}
	return out.Signature, nil
}
