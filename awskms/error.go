package awskms

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// An Error is what KMS answered, or why it did not.
type Error struct {
	Op      string // what was asked, of which key
	Code    string // of KMS: NotFoundException, AccessDeniedException, …; "" where it did not answer
	Message string // of KMS, or what happened on the way; one line
	Status  int    // of HTTP; 0: no answer

	cause error
}

// Error is one line.
func (e *Error) Error() string {
	parts := []string{"kms", e.Op}
	for _, part := range []string{e.Code, e.Message} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ": ")
}

// Unwrap returns the SDK's error.
func (e *Error) Unwrap() error { return e.cause }

// failed makes an [Error] of what the SDK returned.
func failed(what string, err error) error {
	e := &Error{Op: what, cause: err}
	var response *smithyhttp.ResponseError
	if errors.As(err, &response) {
		e.Status = response.HTTPStatusCode()
	}
	var api smithy.APIError
	if errors.As(err, &api) {
		e.Code, e.Message = api.ErrorCode(), oneLine(api.ErrorMessage())
		return e
	}
	var op *smithy.OperationError
	if errors.As(err, &op) {
		err = op.Err
	}
	e.Message = oneLine(err.Error())
	return e
}

// Transient reports whether the same request may do better in a moment: KMS is
// away or throttles, or something went wrong on the way.
func Transient(err error) bool {
	var e *Error
	if !errors.As(err, &e) {
		return false
	}
	if _, throttled := retry.DefaultThrottleErrorCodes[e.Code]; throttled || e.Status >= 500 || e.Status == http.StatusTooManyRequests {
		return true
	}
	var unsent *smithyhttp.RequestSendError
	return e.Code == "" && (errors.As(e.cause, &unsent) || errors.Is(e.cause, context.DeadlineExceeded))
}

// oneLine returns s without line breaks and other control characters.
func oneLine(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }), " ")
}
