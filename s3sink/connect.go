package s3sink

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/credentials/stscreds"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go/logging"
	"github.com/aws/smithy-go/middleware"
)

const (
	defaultTimeout  = 30 * time.Second
	defaultAttempts = 3
	// A store that is not AWS does not care, but a request is signed for one.
	defaultRegion = "us-east-1"
	// One connection for each partition that commits, kept open between
	// commits: a handshake costs more than a small segment.
	idleConnections = 256
)

// connect makes the client, and completes the options with what the SDK finds.
func (b *Bucket) connect(ctx context.Context) error {
	o := &b.url.Options
	cfg, err := o.ambient(ctx)
	if err != nil {
		return err
	}
	b.keys = &keys{look: o.lookAgain, every: keysEvery, found: cfg.Credentials, looked: time.Now()}
	cfg.Credentials = b.keys
	b.checksum = o.Checksum.resolve(cfg.RequestChecksumCalculation)
	b.client = s3.NewFromConfig(cfg, b.configure)
	return o.complete(b.client.Options(), b.checksum)
}

// ambient returns what the SDK finds, and what the options make of it.
func (o Options) ambient(ctx context.Context) (aws.Config, error) {
	cfg, err := config.LoadDefaultConfig(ctx, o.load()...)
	if err != nil {
		return cfg, withoutEnvelope(err)
	}
	if o.RoleARN != "" {
		cfg.Credentials = aws.NewCredentialsCache(stscreds.NewAssumeRoleProvider(sts.NewFromConfig(cfg), o.RoleARN, o.assumeRole))
	}
	return cfg, nil
}

// lookAgain returns the credentials as they are now.
func (o Options) lookAgain(ctx context.Context) (aws.CredentialsProvider, error) {
	if o.Renew != nil {
		if err := o.Renew(&o); err != nil {
			return nil, err
		}
	}
	cfg, err := o.ambient(ctx)
	return cfg.Credentials, err
}

// load returns what the SDK is told before it looks around.
func (o Options) load() []func(*config.LoadOptions) error {
	pool := func(t *http.Transport) {
		t.MaxIdleConns, t.MaxIdleConnsPerHost = idleConnections, idleConnections
	}
	load := []func(*config.LoadOptions) error{
		config.WithAppID("ledgerlake"),
		config.WithLogger(logging.Nop{}),
		// Of a kind that the SDK can teach AWS_CA_BUNDLE.
		config.WithHTTPClient(awshttp.NewBuildableClient().WithTransportOptions(pool)),
	}
	if o.Region != "" {
		load = append(load, config.WithRegion(o.Region))
	}
	if o.Profile != "" {
		load = append(load, config.WithSharedConfigProfile(o.Profile))
	}
	if o.AccessKey != "" {
		static := credentials.NewStaticCredentialsProvider(o.AccessKey, o.SecretKey, o.SessionToken)
		load = append(load, config.WithCredentialsProvider(static))
	}
	return load
}

func (o Options) assumeRole(a *stscreds.AssumeRoleOptions) {
	a.RoleSessionName = "ledgerlake"
	if o.ExternalID != "" {
		a.ExternalID = aws.String(o.ExternalID)
	}
}

// configure sets what a client of ours does otherwise than the SDK's default.
func (b *Bucket) configure(s *s3.Options) {
	o := b.url.Options
	if o.Endpoint != "" {
		s.BaseEndpoint = aws.String(o.Endpoint)
	}
	if s.Region == "" && s.BaseEndpoint != nil {
		s.Region = defaultRegion
	}
	s.UsePathStyle = s.BaseEndpoint != nil
	if o.PathStyle != nil {
		s.UsePathStyle = *o.PathStyle
	}
	s.Retryer = aws.NopRetryer{}
	// Checksums of uploads are ours: see Checksum.
	s.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
	s.ResponseChecksumValidation = b.checksum.onReads()
	s.DisableLogOutputChecksumValidationSkipped = true
	s.APIOptions = append(s.APIOptions, func(stack *middleware.Stack) error {
		if err := stack.Initialize.Add(b.keys, middleware.Before); err != nil {
			return err
		}
		return stack.Deserialize.Add(&meter{requests: &b.requests, tell: o.OnRequest}, middleware.After)
	})
}

// complete fills in what was left to defaults and to the SDK.
func (o *Options) complete(client s3.Options, c Checksum) error {
	if client.Region == "" {
		return errors.New("no region: set region, or AWS_REGION")
	}
	o.Region, o.Checksum, o.PathStyle = client.Region, c, &client.UsePathStyle
	if o.Endpoint == "" {
		o.Endpoint = aws.ToString(client.BaseEndpoint)
	}
	if o.KMSKey != "" && o.SSE == "" {
		o.SSE = "aws:kms"
	}
	if o.Timeout == 0 {
		o.Timeout = defaultTimeout
	}
	if o.Attempts == 0 {
		o.Attempts = defaultAttempts
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o.checkLocks()
}
