package sink

import (
	"crypto/tls"
	"errors"
	"net"
	"slices"
)

// refusals are the alerts of TLS about certificates, versions and rights (RFC
// 8446, section 6.2): handshake_failure, bad_certificate, unsupported_certificate,
// certificate_revoked, certificate_expired, certificate_unknown, unknown_ca,
// access_denied, protocol_version, insufficient_security, certificate_required.
var refusals = []tls.AlertError{40, 42, 43, 44, 45, 46, 48, 49, 70, 71, 116}

// IsRefusal reports whether an error of a connection over TLS is one that stays
// until somebody acts: the other side shows a certificate that is not good, or says
// that it will not have ours.
func IsRefusal(err error) bool {
	var cert *tls.CertificateVerificationError
	if errors.As(err, &cert) {
		return true
	}
	var op *net.OpError
	if !errors.As(err, &op) || op.Op != "remote error" { // as crypto/tls has an alert of the other side
		return false
	}
	return slices.ContainsFunc(refusals, func(a tls.AlertError) bool { return a.Error() == op.Err.Error() })
}
