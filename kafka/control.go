package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// A Remark is what [LookAtControlTopic] found.
type Remark struct {
	Name string // RemarkTopic, RemarkPolicy or RemarkWriters
	Warn bool   // it should be looked at
	Text string
}

// What a remark is about.
const (
	RemarkTopic   = "control-topic"
	RemarkPolicy  = "control-policy"
	RemarkWriters = "control-writers"
)

// LookAtControlTopic looks at the topic whose records govern an archive: that it
// has one partition, keeps all records, and that nobody may write to it but
// principals ("User:dpo"), as far as brokers tell these credentials; where
// principals is nil, that not everybody may. Super users, and rights that are
// given outside of Kafka's ACLs (IAM), show nowhere. It changes nothing. An error
// says that brokers do not answer.
func LookAtControlTopic(ctx context.Context, connect []kgo.Opt, topic string, principals []string) ([]Remark, error) {
	client, err := kgo.NewClient(connect...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	there, remarks, err := lookAtTopic(ctx, kadm.NewClient(client), topic)
	if err != nil {
		return nil, err
	}
	if there {
		config, err := lookAtPolicy(ctx, kadm.NewClient(client), topic)
		if err != nil {
			return nil, err
		}
		remarks = append(remarks, config...)
	}
	writers, err := lookAtWriters(ctx, client, topic, principals)
	return append(remarks, writers), err
}

func lookAtTopic(ctx context.Context, admin *kadm.Client, topic string) (there bool, remarks []Remark, err error) {
	found, err := admin.ListTopics(ctx, topic)
	if err != nil {
		return false, nil, err
	}
	d := found[topic]
	switch {
	case errors.Is(d.Err, kerr.UnknownTopicOrPartition):
		return false, []Remark{{RemarkTopic, true, "it does not exist: make it with one partition, cleanup.policy=delete and write access for operators alone"}}, nil
	case d.Err != nil:
		return false, nil, fmt.Errorf("topic %s: %w", topic, d.Err)
	case len(d.Partitions) != 1:
		return true, []Remark{{RemarkTopic, true, fmt.Sprintf("it has %d partitions, and should have one: what is ordered and taken back would have no order between them", len(d.Partitions))}}, nil
	}
	return true, []Remark{{RemarkTopic, false, "it has one partition"}}, nil
}

func lookAtPolicy(ctx context.Context, admin *kadm.Client, topic string) ([]Remark, error) {
	configs, err := admin.DescribeTopicConfigs(ctx, topic)
	if err == nil && len(configs) == 1 {
		err = configs[0].Err
	}
	if refused(err) {
		return []Remark{{RemarkPolicy, false, "these credentials may not see its cleanup.policy: it should be delete"}}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("settings of topic %s: %w", topic, err)
	}
	for _, c := range configs {
		for _, v := range c.Configs {
			if v.Key == "cleanup.policy" && v.Value != nil && strings.Contains(*v.Value, "compact") {
				return []Remark{{RemarkPolicy, true, "its cleanup.policy is " + *v.Value + ": of the records of one tenant only the last would stay; set delete"}}, nil
			}
		}
	}
	return nil, nil
}

// refused reports whether an error says that credentials do not reach that far,
// or that the broker does not know the question.
func refused(err error) bool {
	return errors.Is(err, kerr.ClusterAuthorizationFailed) || errors.Is(err, kerr.TopicAuthorizationFailed) || errors.Is(err, kerr.UnsupportedVersion)
}

// lookAtWriters looks at who may write to the topic.
func lookAtWriters(ctx context.Context, client *kgo.Client, topic string, principals []string) (Remark, error) {
	req := kmsg.NewPtrDescribeACLsRequest()
	req.ResourceType, req.ResourceName, req.ResourcePatternType = kmsg.ACLResourceTypeTopic, &topic, kmsg.ACLResourcePatternTypeMatch
	req.Operation, req.PermissionType = kmsg.ACLOperationAny, kmsg.ACLPermissionTypeAny
	resp, err := req.RequestWith(ctx, client)
	if err == nil {
		err = kerr.ErrorForCode(resp.ErrorCode)
	}
	switch {
	case errors.Is(err, kerr.SecurityDisabled):
		return Remark{RemarkWriters, true, "the brokers have no authorizer: whoever reaches them may write to it, and so order erasures; set control-keys, or an authorizer"}, nil
	case refused(err):
		return Remark{RemarkWriters, false, "these credentials may not see ACLs, so that who may write to it cannot be told"}, nil
	case err != nil:
		return Remark{}, fmt.Errorf("ACLs of topic %s: %w", topic, err)
	}
	w := writersOf(resp)
	if w.acls == 0 {
		return noACLs(ctx, client)
	}
	strangers := slices.DeleteFunc(slices.Clone(w.allowed), func(p string) bool { return slices.Contains(principals, p) })
	switch {
	case slices.Contains(strangers, "User:*"):
		return Remark{RemarkWriters, true, "an ACL lets everybody (User:*) write to it, and so order erasures"}, nil
	case principals != nil && len(strangers) > 0:
		return Remark{RemarkWriters, true, "ACLs let " + strings.Join(strangers, ", ") + " write to it: name those that are operators in control-principals, and take the right from the others"}, nil
	case len(w.allowed) > 0:
		return Remark{RemarkWriters, false, "by ACLs only " + strings.Join(w.allowed, ", ") + " may write to it"}, nil
	}
	return Remark{RemarkWriters, false, "no ACL lets anybody write to it: super users may, or whoever rights are given to outside of ACLs"}, nil
}

// writers are the principals that ACLs let write.
type writers struct {
	acls    int // of the topic, whatever they say
	allowed []string
}

func writersOf(resp *kmsg.DescribeACLsResponse) (w writers) {
	var denied []string
	for _, r := range resp.Resources {
		for _, a := range r.ACLs {
			w.acls++
			writes := a.Operation == kmsg.ACLOperationWrite || a.Operation == kmsg.ACLOperationAll
			switch {
			case !writes:
			case a.PermissionType == kmsg.ACLPermissionTypeAllow:
				w.allowed = append(w.allowed, a.Principal)
			case a.PermissionType == kmsg.ACLPermissionTypeDeny && a.Host == "*":
				denied = append(denied, a.Principal)
			}
		}
	}
	w.allowed = slices.DeleteFunc(w.allowed, func(p string) bool { return slices.Contains(denied, p) || slices.Contains(denied, "User:*") })
	slices.Sort(w.allowed)
	w.allowed = slices.Compact(w.allowed)
	return w
}

// noACLs says what a topic without ACLs means: that depends on a setting of the
// brokers.
func noACLs(ctx context.Context, client *kgo.Client) (Remark, error) {
	unknown := Remark{RemarkWriters, true, "it has no ACLs: everybody may write to it where the brokers have allow.everyone.if.no.acl.found, which these credentials may not see"}
	brokers, err := kadm.NewClient(client).ListBrokers(ctx)
	if err != nil || len(brokers) == 0 {
		return unknown, err
	}
	configs, err := kadm.NewClient(client).DescribeBrokerConfigs(ctx, brokers[0].NodeID)
	if err == nil && len(configs) > 0 {
		err = configs[0].Err
	}
	if refused(err) {
		return unknown, nil
	}
	if err != nil {
		return Remark{}, fmt.Errorf("settings of the brokers: %w", err)
	}
	set := map[string]string{}
	for _, c := range configs {
		for _, v := range c.Configs {
			if v.Value != nil {
				set[v.Key] = *v.Value
			}
		}
	}
	authorizer, told := set["authorizer.class.name"]
	switch {
	case set["allow.everyone.if.no.acl.found"] == "true":
		return Remark{RemarkWriters, true, "it has no ACLs, and the brokers let everybody write to such topics (allow.everyone.if.no.acl.found): whoever reaches them may order erasures"}, nil
	case told && authorizer == "":
		return Remark{RemarkWriters, true, "the brokers have no authorizer (authorizer.class.name is empty): whoever reaches them may write to it, and so order erasures"}, nil
	}
	return Remark{RemarkWriters, false, "it has no ACLs: only super users may write to it, or whoever rights are given to outside of ACLs"}, nil
}
