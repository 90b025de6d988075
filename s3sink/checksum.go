package s3sink

import (
	"crypto/md5"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// A Checksum is what goes with an upload so that the store can refuse one that
// was damaged on its way. The zero value is [CRC32], or [NoChecksum] where
// AWS_REQUEST_CHECKSUM_CALCULATION or the shared configuration says
// when_required.
//
// Whatever it is, it goes as a plain header and never as a trailer of an
// aws-chunked body, which is what the SDK would send over https and what many
// stores that are not AWS refuse: the bytes are in memory, so their sum is
// known before the first of them leaves.
type Checksum string

const (
	CRC32      Checksum = "crc32"  // x-amz-checksum-crc32; reads are checked against what the store keeps
	SHA256     Checksum = "sha256" // x-amz-checksum-sha256; likewise
	MD5        Checksum = "md5"    // Content-MD5, which stores that refuse the others know
	NoChecksum Checksum = "none"   // nothing, also on reads
)

// checksums are all of them, the ones that protect more before the others.
var checksums = []Checksum{CRC32, SHA256, MD5, NoChecksum}

// ParseChecksum reads the name of a Checksum. AWS's own when-supported and
// when-required are other names of crc32 and none.
func ParseChecksum(s string) (Checksum, error) {
	switch c := Checksum(s); c {
	case CRC32, SHA256, MD5, NoChecksum:
		return c, nil
	}
	switch strings.ReplaceAll(s, "_", "-") {
	case "when-supported":
		return CRC32, nil
	case "when-required":
		return NoChecksum, nil
	}
	return "", fmt.Errorf("want crc32, sha256, md5 or none")
}

// put adds the checksum of body to a request.
func (c Checksum) put(in *s3.PutObjectInput, body []byte) {
	switch c {
	case CRC32:
		sum := binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE(body))
		in.ChecksumCRC32 = base64Of(sum)
	case SHA256:
		sum := sha256.Sum256(body)
		in.ChecksumSHA256 = base64Of(sum[:])
	case MD5:
		sum := md5.Sum(body) // against accidents alone: the chain is what stands against intent
		in.ContentMD5 = base64Of(sum[:])
	}
}

// onReads reports whether the store is asked for the checksum that it keeps.
// One that refuses to be sent them is better not asked.
func (c Checksum) onReads() aws.ResponseChecksumValidation {
	if c == CRC32 || c == SHA256 {
		return aws.ResponseChecksumValidationWhenSupported
	}
	return aws.ResponseChecksumValidationWhenRequired
}

// resolve gives the zero value its meaning.
func (c Checksum) resolve(ambient aws.RequestChecksumCalculation) Checksum {
	switch {
	case c != "":
		return c
	case ambient == aws.RequestChecksumCalculationWhenRequired:
		return NoChecksum
	}
	return CRC32
}

func base64Of(sum []byte) *string { return aws.String(base64.StdEncoding.EncodeToString(sum)) }
