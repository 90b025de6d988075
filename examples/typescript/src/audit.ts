// A producer of audit records in one file: copy it into your service.
//
// record() returns at once, does no I/O and never throws: an audit must not be
// able to fail the work that it is about. Records wait in memory for Kafka, at
// most 10,000 of them, or 64 MB; beyond that the oldest go, and a record of kind
// queue-dropped says of each tenant how many went so far.
import { setTimeout as sleep } from "node:timers/promises";
import { CompressionTypes, Kafka, type Message, Partitioners, type Producer } from "kafkajs";
import { monotonicFactory } from "ulid";

const ulid = monotonicFactory(); // ids of one millisecond are in order, too
const mostWaiting = 10_000;
const mostBytes = 64_000_000; // of what waits, as characters
const kindHeader = "ledgerlake-kind";
const refused = new Set(["MESSAGE_TOO_LARGE", "RECORD_LIST_TOO_LARGE", "INVALID_RECORD"]);

/** Whom the agent works for. No id of a tenant, session or turn may name a person; userId may. */
export interface Principal {
  tenantId: string;
  userId: string | null;
  actorKind: "user" | "guest" | "scheduled" | "system";
  sessionAuthMethod: "clerk" | "api-key" | "guest-token" | "internal";
}

/** A turn: what serves one message of a user. */
export interface TurnOptions {
  sessionId: string;
  turnId: string;
  principal: Principal;
  firstSeq?: number; // how many records the turn has already, where another process began it
  headers?: Record<string, string>; // traceparent, ledgerlake-retain-prompts
}

/** One call of a model or a tool. Slots (fallbackStep, tokenCost, …) and any other members are kept as they are. */
export interface Step {
  stageId: "anchor-plan" | "tool-loop" | "synthesize" | "post-turn";
  call: { callClass: string; provider: string; model: string; transport?: "native" | "openrouter" | "byok-native" | "byok-openrouter" };
  outcome: {
    status: "ok" | "provider-error" | "guard-rejected" | "timeout" | "user-aborted";
    latencyMs: number;
    finishReason?: string | null;
    httpStatus?: number | null;
  };
  [member: string]: unknown;
}

export class Audit {
  readonly #producer: Producer;
  readonly #waiting: Message[] = [];
  readonly #dropped = new Map<string, number>(); // by tenant, since the start
  readonly #unsaid = new Set<string>(); // tenants whose count Kafka does not have yet
  #sending: Promise<void> | undefined;
  readonly #id = ulid(); // of this producer: notices belong to it
  #notices = 0;
  #bytes = 0; // of what waits
  #underway = 0;
  #closed = false;

  constructor(kafka: Kafka, private readonly topic: string, private readonly onError: (e: unknown) => void = console.error) {
    this.#producer = kafka.producer({
      idempotent: true, // a request that is sent again makes no second record
      createPartitioner: Partitioners.DefaultPartitioner, // murmur2 of the key, as Kafka's own clients do it
    });
  }

  turn(options: TurnOptions): Turn {
    return new Turn(options, (record) => this.#add(options.principal.tenantId, "call", record, options.headers));
  }

  /** Waits until Kafka has all records, for that long at most, and returns how many it has not. End the process then. */
  async close(withinMs = 2_000): Promise<number> {
    await within(withinMs, this.#sending);
    this.#closed = true;
    const left = this.#waiting.length + this.#underway;
    await within(1_000, this.#producer.disconnect().catch(this.onError));
    return left;
  }

  #add(tenant: string, kind: string, record: object, headers: Record<string, string> = {}): void {
    // The tenant as the key: all of its records go to one partition, in order.
    const message = { key: tenant, value: "", headers: { ...headers, tenant, [kindHeader]: kind } };
    try {
      message.value = JSON.stringify(record, wellFormed);
      this.#waiting.push(message);
      this.#bytes += message.value.length;
      while (this.#waiting.length > mostWaiting || this.#bytes > mostBytes) this.#take(1).forEach((m) => this.#lost(m));
      this.#sending ??= this.#send();
    } catch (e) {
      this.onError(e); // a value that JSON cannot say, such as a circle
      this.#lost(message);
    }
  }

  #take(most: number): Message[] {
    const taken = this.#waiting.splice(0, most);
    for (const { value } of taken) this.#bytes -= value?.length ?? 0;
    return taken;
  }

  #lost(message: Message): void {
    const tenant = String(message.key);
    if (!isNotice(message)) this.#dropped.set(tenant, (this.#dropped.get(tenant) ?? 0) + 1);
    this.#unsaid.add(tenant);
  }

  /** One request is under way at a time; what comes meanwhile goes together with the next one. */
  async #send(): Promise<void> {
    await Promise.resolve(); // records of one synchronous stretch go together
    while (this.#waiting.length + this.#unsaid.size > 0 && !this.#closed) {
      this.#say([...this.#unsaid]);
      const batch = this.#take(100);
      this.#underway = batch.length;
      await this.#deliver(batch);
      this.#underway = 0;
    }
    this.#sending = undefined; // in the same step as the last look at what waits
  }

  #say(tenants: string[]): void {
    this.#unsaid.clear();
    for (const tenantId of tenants) {
      const resultDetail = { reason: "queue-full, or refused", count: this.#dropped.get(tenantId) };
      const ids = { recordId: ulid(), traceId: this.#id, seq: this.#notices++ };
      this.#add(tenantId, "queue-dropped", { kind: "queue-dropped", tenantId, ...ids, ts: new Date().toISOString(), actor: "system", resultDetail });
    }
  }

  /** Tries until Kafka has the records, or says that it will never take one of them. */
  async #deliver(batch: Message[]): Promise<void> {
    while (!this.#closed) {
      try {
        await this.#producer.connect();
        await this.#producer.send({ topic: this.topic, messages: batch, acks: -1, compression: CompressionTypes.GZIP });
        return;
      } catch (e) {
        this.onError(e);
        if (refused.has((e as { type?: string }).type ?? "")) return this.#oneByOne(batch);
        await sleep(1_000);
      }
    }
  }

  /** Of a request that Kafka refuses, the records that it takes. */
  async #oneByOne(batch: Message[]): Promise<void> {
    const [one, ...others] = batch;
    if (one !== undefined && others.length === 0) {
      if (!isNotice(one)) this.#lost(one); // a notice that is refused is not tried again
      return;
    }
    for (const each of batch) await this.#deliver([each]);
  }
}

export class Turn {
  #seq: number;

  constructor(private readonly options: TurnOptions, private readonly add: (record: object) => void) {
    this.#seq = options.firstSeq ?? 0;
  }

  /** Session, turn, stage and seqWithinTurn are the record's coordinates: sent again, it is no second row. */
  record(step: Step): void {
    const { sessionId, turnId, principal } = this.options;
    this.add({
      auditRecordVersion: 19,
      recordId: ulid(),
      sessionId,
      turnId,
      seqWithinTurn: this.#seq++,
      createdAt: new Date().toISOString(),
      principal,
      ...step,
    });
  }
}

/** Waits for something, and no longer than that. */
async function within(ms: number, something: Promise<unknown> | undefined): Promise<void> {
  const over = new AbortController();
  const timer = sleep(ms, undefined, { signal: over.signal }).catch(() => undefined);
  await Promise.race([something, timer]);
  over.abort();
}

/** Says whether it is a count of what was dropped. */
function isNotice(message: Message): boolean {
  return message.headers?.[kindHeader] === "queue-dropped";
}

/** Half of an emoji, which a cut leaves, is no Unicode: it would make the record a reject. */
function wellFormed(_: string, value: unknown): unknown {
  return typeof value === "string" ? value.toWellFormed() : value;
}
