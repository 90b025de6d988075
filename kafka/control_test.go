package kafka

import (
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// An acl is one line of what brokers tell.
type acl struct {
	principal  string
	operation  kmsg.ACLOperation
	permission kmsg.ACLPermissionType
}

// What is said of who may write depends on what brokers tell: answers as Apache
// Kafka gives them, with and without an authorizer, and to credentials that may
// not ask.
func TestWhoMayWrite(t *testing.T) {
	const allow, deny = kmsg.ACLPermissionTypeAllow, kmsg.ACLPermissionTypeDeny
	const write, read, all = kmsg.ACLOperationWrite, kmsg.ACLOperationRead, kmsg.ACLOperationAll
	for name, c := range map[string]struct {
		err     *kerr.Error
		acls    []acl
		brokers map[string]string // nil: they may not be seen
		warn    bool
		says    string
	}{
		"no authorizer":              {kerr.SecurityDisabled, nil, nil, true, "have no authorizer"},
		"no authorizer, it says":     {nil, nil, map[string]string{"authorizer.class.name": ""}, true, "authorizer.class.name is empty"},
		"may not ask":                {kerr.ClusterAuthorizationFailed, nil, nil, false, "cannot be told"},
		"no ACLs, unknown":           {nil, nil, nil, true, "may not see"},
		"no ACLs, everybody":         {nil, nil, map[string]string{"authorizer.class.name": "x", "allow.everyone.if.no.acl.found": "true"}, true, "let everybody write"},
		"no ACLs, nobody":            {nil, nil, map[string]string{"authorizer.class.name": "x", "allow.everyone.if.no.acl.found": "false"}, false, "only super users"},
		"the operators":              {nil, []acl{{"User:dpo", write, allow}, {"User:compact", all, allow}, {"User:ingest", read, allow}}, nil, false, "only User:compact, User:dpo may"},
		"another one":                {nil, []acl{{"User:dpo", write, allow}, {"User:app", write, allow}}, nil, true, "let User:app write"},
		"another one, denied":        {nil, []acl{{"User:dpo", write, allow}, {"User:app", write, allow}, {"User:app", all, deny}}, nil, false, "only User:dpo may"},
		"everybody":                  {nil, []acl{{"User:*", write, allow}}, nil, true, "User:*"},
		"nobody, and somebody reads": {nil, []acl{{"User:ingest", read, allow}}, nil, false, "no ACL lets anybody write"},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := newCluster(t)
			answer(cluster, c.err, c.acls, c.brokers)
			remarks, err := LookAtControlTopic(t.Context(), []kgo.Opt{kgo.SeedBrokers(cluster.ListenAddrs()...)}, "ledgerlake.control", []string{"User:dpo", "User:compact"})
			if err != nil {
				t.Fatal(err)
			}
			if got := remarks[len(remarks)-1]; got.Warn != c.warn || !strings.Contains(got.Text, c.says) {
				t.Errorf("%+v, want %v, %q", got, c.warn, c.says)
			}
		})
	}
}

func newCluster(t *testing.T) *kfake.Cluster {
	t.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "ledgerlake.control"), kfake.SeedTopics(3, "wide"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	return cluster
}

// answer has a cluster answer questions for ACLs and for settings of brokers.
func answer(cluster *kfake.Cluster, refusal *kerr.Error, acls []acl, brokers map[string]string) {
	cluster.ControlKey(int16(kmsg.DescribeACLs), func(req kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		resp := req.ResponseKind().(*kmsg.DescribeACLsResponse)
		if refusal != nil {
			resp.ErrorCode = refusal.Code
			return resp, nil, true
		}
		for _, a := range acls {
			r := kmsg.NewDescribeACLsResponseResource()
			r.ResourceType, r.ResourceName, r.ResourcePatternType = kmsg.ACLResourceTypeTopic, "ledgerlake.control", kmsg.ACLResourcePatternTypeLiteral
			one := kmsg.NewDescribeACLsResponseResourceACL()
			one.Principal, one.Host, one.Operation, one.PermissionType = a.principal, "*", a.operation, a.permission
			r.ACLs = append(r.ACLs, one)
			resp.Resources = append(resp.Resources, r)
		}
		return resp, nil, true
	})
	cluster.ControlKey(int16(kmsg.DescribeConfigs), func(req kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		asked := req.(*kmsg.DescribeConfigsRequest)
		if len(asked.Resources) == 0 || asked.Resources[0].ResourceType != kmsg.ConfigResourceTypeBroker {
			return nil, nil, false
		}
		resp := req.ResponseKind().(*kmsg.DescribeConfigsResponse)
		r := kmsg.NewDescribeConfigsResponseResource()
		r.ResourceType, r.ResourceName = asked.Resources[0].ResourceType, asked.Resources[0].ResourceName
		if brokers == nil {
			r.ErrorCode = kerr.ClusterAuthorizationFailed.Code
		}
		for name, value := range brokers {
			v := kmsg.NewDescribeConfigsResponseResourceConfig()
			v.Name, v.Value = name, &value
			r.Configs = append(r.Configs, v)
		}
		resp.Resources = append(resp.Resources, r)
		return resp, nil, true
	})
}

// A control topic that is not there, has more than one partition, or loses
// records is told.
func TestControlTopic(t *testing.T) {
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(1, "good"), kfake.SeedTopics(3, "wide"))
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	compacted := "compact"
	if err := create(t, cluster, "compacted", map[string]*string{"cleanup.policy": &compacted}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		topic string
		warn  bool
		says  string
	}{
		{"compacted", true, "its cleanup.policy is compact"},
		{"good", false, "it has one partition"},
		{"wide", true, "it has 3 partitions"},
		{"none", true, "it does not exist"},
	} {
		remarks, err := LookAtControlTopic(t.Context(), []kgo.Opt{kgo.SeedBrokers(cluster.ListenAddrs()...)}, c.topic, nil)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.ContainsFunc(remarks, func(r Remark) bool { return r.Warn == c.warn && strings.Contains(r.Text, c.says) }) {
			t.Errorf("%s: %+v", c.topic, remarks)
		}
	}
}

func create(t *testing.T, cluster *kfake.Cluster, topic string, configs map[string]*string) error {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...))
	if err != nil {
		return err
	}
	defer client.Close()
	_, err = kadm.NewClient(client).CreateTopic(t.Context(), 1, 1, configs, topic)
	return err
}

// Where it is not said who the operators are, only that everybody may write is a
// warning.
func TestWhoMayWriteToAnUnknownOperator(t *testing.T) {
	for principal, warn := range map[string]bool{"User:dpo": false, "User:*": true} {
		cluster := newCluster(t)
		answer(cluster, nil, []acl{{principal, kmsg.ACLOperationWrite, kmsg.ACLPermissionTypeAllow}}, nil)
		remarks, err := LookAtControlTopic(t.Context(), []kgo.Opt{kgo.SeedBrokers(cluster.ListenAddrs()...)}, "ledgerlake.control", nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := remarks[len(remarks)-1]; got.Name != RemarkWriters || got.Warn != warn {
			t.Errorf("%s: %+v", principal, got)
		}
	}
}
