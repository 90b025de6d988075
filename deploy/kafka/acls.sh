#!/bin/sh
# Gives each role the ACLs that it needs, and no more (docs/permissions.md).
#
#   BOOTSTRAP=broker:9092 deploy/kafka/acls.sh                 all roles
#   BOOTSTRAP=broker:9092 deploy/kafka/acls.sh ingest compact  some of: producers ingest compact export auditor operators
#
# It runs kafka-acls.sh of Apache Kafka (KAFKA_ACLS), once for each line at the end,
# as who may change ACLs (COMMAND_CONFIG, a file of client settings). It only adds:
# what others may do already stays. Nobody may do anything that no ACL says, unless
# the brokers have allow.everyone.if.no.acl.found=true: then the first ACL of a
# topic shuts everybody else out of it.
set -eu

: "${BOOTSTRAP:?host:port of a broker}"
KAFKA_ACLS=${KAFKA_ACLS:-kafka-acls.sh}
COMMAND_CONFIG=${COMMAND_CONFIG-}

# Topics and groups, as the settings of the same names have them.
TOPICS=${TOPICS:-audit.calls} # separated by blanks
CONTROL_TOPIC=${CONTROL_TOPIC:-ledgerlake.control}
ANCHOR_TOPIC=${ANCHOR_TOPIC:-ledgerlake.anchors}
DLQ_TOPIC=${DLQ_TOPIC-}
AUDIT_TOPIC=${AUDIT_TOPIC:-${TOPICS%% *}} # stream.audit-topic
GROUP=${GROUP:-ledgerlake}
COMPACT_GROUP=${COMPACT_GROUP:-ledgerlake-compact}

# Who plays which role.
PRODUCERS=${PRODUCERS:-User:producer} # separated by blanks
OPERATORS=${OPERATORS:-User:operator} # who orders erasures, holds and cuts
INGEST=${INGEST:-User:ingest}
COMPACT=${COMPACT:-User:compact}
EXPORT=${EXPORT:-User:export}
AUDITOR=${AUDITOR:-User:auditor}

# allow WHO OPERATIONS RESOURCE...: lets principals, separated by blanks, do
# operations, separated by commas.
allow() {
	who=$1 operations=$2
	shift 2
	for principal in $who; do
		set -- "$@" --allow-principal "$principal"
	done
	for operation in $(echo "$operations" | tr , ' '); do
		set -- "$@" --operation "$operation"
	done
	"$KAFKA_ACLS" --bootstrap-server "$BOOTSTRAP" ${COMMAND_CONFIG:+--command-config "$COMMAND_CONFIG"} --add "$@"
}

# topics NAME...: the names as arguments of kafka-acls.sh.
topics() { for name; do printf ' --topic %s' "$name"; done; }

# The names of topics have no blanks, and are split here.
# shellcheck disable=SC2046,SC2086
role() {
	case $1 in
	producers)
		allow "$PRODUCERS" Write,Describe $(topics $TOPICS)
		;;
	ingest)
		allow "$INGEST" Read,Describe,DescribeConfigs $(topics $TOPICS $CONTROL_TOPIC)
		# The group, and the one beside it that says what was compared.
		allow "$INGEST" Read --group "$GROUP" --group "$GROUP.vouchers"
		allow "$INGEST" Read,Write,Describe,Create $(topics $ANCHOR_TOPIC)
		[ -z "$DLQ_TOPIC" ] || allow "$INGEST" Write,Describe $(topics $DLQ_TOPIC)
		;;
	compact)
		# It reads no record: the group only shares the partitions.
		allow "$COMPACT" Describe $(topics $TOPICS)
		allow "$COMPACT" Write,Describe,DescribeConfigs $(topics $CONTROL_TOPIC)
		allow "$COMPACT" Read --group "$COMPACT_GROUP"
		;;
	export)
		allow "$EXPORT" Write,Describe $(topics $AUDIT_TOPIC)
		;;
	auditor)
		allow "$AUDITOR" Read,Describe $(topics $ANCHOR_TOPIC)
		;;
	operators)
		allow "$OPERATORS" Write,Describe $(topics $CONTROL_TOPIC)
		;;
	*)
		echo "no role $1: want producers, ingest, compact, export, auditor or operators" >&2
		exit 2
		;;
	esac
}

[ $# -gt 0 ] || set -- producers ingest compact export auditor operators
for name; do role "$name"; done
