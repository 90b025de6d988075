package kafka

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsconfig "github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/smithy-go/logging"
	"github.com/twmb/franz-go/pkg/sasl"
	mskiam "github.com/twmb/franz-go/pkg/sasl/aws"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"github.com/ledgerlake/ledgerlake/config"
)

// mechanism returns how this process says who it is, nil where it does not.
// Every mechanism asks for its secret anew for each connection and each time
// that a broker wants to be told again (KIP-368).
func mechanism(ctx context.Context, to *Connection) (sasl.Mechanism, error) {
	c := &to.Kafka.SASL
	switch c.Mechanism {
	case config.SASLPlain:
		return plain.Plain(func(context.Context) (plain.Auth, error) {
			password, err := c.Password.Renewed()
			return plain.Auth{User: c.User, Pass: password}, err
		}), nil
	case config.SASLScram256:
		return scram.Sha256(scramAuth(c)), nil
	case config.SASLScram512:
		return scram.Sha512(scramAuth(c)), nil
	case config.SASLOAuthBearer:
		return oauth.Oauth(bearer(c)), nil
	case config.SASLAWSMSKIAM:
		return iam(ctx, to.Brokers, to.Agent)
	}
	return nil, nil
}

func scramAuth(c *config.SASL) func(context.Context) (scram.Auth, error) {
	return func(context.Context) (scram.Auth, error) {
		password, err := c.Password.Renewed()
		return scram.Auth{User: c.User, Pass: password}, err
	}
}

// bearer returns where the tokens of OAUTHBEARER come from: a token service, or
// whoever writes the token to where the settings say.
func bearer(c *config.SASL) func(context.Context) (oauth.Auth, error) {
	extensions := map[string]string{}
	for _, e := range c.OAuth.Extensions {
		name, value, _ := strings.Cut(e, "=")
		extensions[name] = value
	}
	token := c.Token.Renewed
	if c.OAuth.TokenURL != "" {
		token = fromService(&c.OAuth)
	}
	return func(context.Context) (oauth.Auth, error) {
		text, err := token()
		return oauth.Auth{Token: text, Extensions: extensions}, err
	}
}

const (
	// tokenEarly is how long before its end a token is not used any more.
	tokenEarly = 30 * time.Second
	// tokenTimeout is how long a token service may take.
	tokenTimeout = 15 * time.Second
)

// A tokenService gets tokens by the client credentials flow.
type tokenService struct {
	flow   clientcredentials.Config
	secret config.Secret
	client *http.Client
}

// fromService returns a func that returns a token which is valid for a while.
// Several connections share one token.
func fromService(o *config.OAuth) func() (string, error) {
	source := oauth2.ReuseTokenSourceWithExpiry(nil, &tokenService{
		flow:   clientcredentials.Config{ClientID: o.ClientID, TokenURL: o.TokenURL, Scopes: o.Scopes},
		secret: o.ClientSecret, client: &http.Client{Timeout: tokenTimeout},
	}, tokenEarly)
	return func() (string, error) {
		t, err := source.Token()
		if err != nil {
			return "", fmt.Errorf("token from %s: %w", o.TokenURL, withoutAnswer(err))
		}
		return t.AccessToken, nil
	}
}

// Token asks for a new token. It is never called by two at once.
func (s *tokenService) Token() (*oauth2.Token, error) {
	secret, err := s.secret.Renewed()
	if err != nil {
		return nil, err
	}
	s.flow.ClientSecret = secret
	return s.flow.Token(context.WithValue(context.Background(), oauth2.HTTPClient, s.client))
}

// withoutAnswer leaves out of an error the body of the service's answer, which
// may be a page, and may repeat what was sent.
func withoutAnswer(err error) error {
	var answer *oauth2.RetrieveError
	if errors.As(err, &answer) {
		return fmt.Errorf("%s %s", answer.Response.Status, answer.ErrorCode)
	}
	return err
}

// iam returns the mechanism of Amazon MSK. It refuses brokers of which nobody
// can tell the region that a signature must name.
func iam(ctx context.Context, brokers []string, agent string) (sasl.Mechanism, error) {
	for _, b := range brokers {
		if _, _, err := (mskiam.Auth{}).AsManagedStreamingIAMMechanism().Authenticate(ctx, b); err != nil {
			return nil, fmt.Errorf("%w: want brokers of Amazon MSK, or AWS_REGION in the environment", err)
		}
	}
	return mskiam.ManagedStreamingIAM((&awsKeys{agent: agent}).auth), nil
}

// awsKeys are the credentials that the AWS SDK finds where AWS users keep them.
type awsKeys struct {
	agent    string
	mu       sync.Mutex
	provider aws.CredentialsProvider // nil: look first
}

// auth returns them as they are now. The SDK renews those that expire; others
// may stand in a file that is replaced, so they are looked up each time.
func (k *awsKeys) auth(ctx context.Context) (mskiam.Auth, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.provider == nil {
		found, err := awsconfig.LoadDefaultConfig(ctx, awsconfig.WithLogger(logging.Nop{}))
		if err != nil {
			return mskiam.Auth{}, err
		}
		k.provider = found.Credentials
	}
	c, err := k.provider.Retrieve(ctx)
	if err != nil || !c.CanExpire {
		k.provider = nil
	}
	return mskiam.Auth{AccessKey: c.AccessKeyID, SecretKey: c.SecretAccessKey, SessionToken: c.SessionToken, UserAgent: k.agent}, err
}
