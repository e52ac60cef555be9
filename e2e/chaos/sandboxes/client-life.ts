// A client of the chaos run. Carries out the operations of its plan in sequence, on its own
// sandboxes, and keeps the results.
import { setTimeout as delay } from 'node:timers/promises';
import { SANDBOX_ACTION_RULES, type SandboxAction, type SandboxStatus } from '@berth/contract/sandboxes/state.ts';
import type { ExecResult } from '@berth/contract/commands/exec.ts';
import type { Sandbox } from '@berth/contract/sandboxes/sandboxes.ts';
import { sandboxIn, type ChaosClient, type Reply } from '../judging/client.ts';
import { beginLife, parseReadBack, READ_BACK, writeFile, type Place, type Written } from '../model/guest-work.ts';
import { KnownSandbox } from '../model/known-sandbox.ts';
import { violationOf } from '../judging/violation.ts';
import type { Operation, Verb } from '../model/plan.ts';
import type { Report } from '../judging/report.ts';
import type { FaultLog } from '../judging/faults.ts';

/** Limit on live sandboxes per client: all of them must fit on a small host. */
const LIVE_AT_MOST = 3;
const EXEC_TIMEOUT_SECONDS = 30;
/** A create is retried with its key until a response arrives. */
const CREATE_DEADLINE_MS = 120_000;
const FILES_AT_MOST = 24;
/** Pause before retrying a service that does not respond. */
const SILENCE_PAUSE_MS = 300;

type Operated<K extends Operation['kind']> = Extract<Operation, { kind: K }>;

export class ClientLife {
  readonly name: string;
  readonly sandboxes: KnownSandbox[] = [];
  /** Keys of creates without a response: each may have made a sandbox. */
  readonly unansweredKeys: string[] = [];
  readonly #client: ChaosClient;
  readonly #faults: FaultLog;
  readonly #report: Report;
  readonly #projects: { persistent: string; ephemeral: string };
  readonly #creates = new Map<string, Record<string, unknown>>();
  #made = 0;
  #files = 0;

  constructor(
    name: string,
    client: ChaosClient,
    faults: FaultLog,
    report: Report,
    projects: { persistent: string; ephemeral: string },
  ) {
    this.name = name;
    this.#client = client;
    this.#faults = faults;
    this.#report = report;
    this.#projects = projects;
  }

  async run(operation: Operation): Promise<void> {
    switch (operation.kind) {
      case 'create':
        return await this.#create(operation);
      case 'replay':
        return await this.#replay(operation);
      case 'list':
        return await this.list();
      default:
    }
    const sandbox = this.#choose(operation);
    if (sandbox === null) return;
    switch (operation.kind) {
      case 'write':
        return await this.#write(sandbox, operation.where, operation.kib * 1_024, operation.files);
      case 'read':
        return await this.read(sandbox);
      case 'get':
        return await this.get(sandbox);
      case 'resize':
        return await this.#resize(sandbox, operation);
      case 'overtake':
        return await this.#overtake(sandbox, operation);
      default:
        return await this.verb(sandbox, operation.kind, operation.respondAsync);
    }
  }

  async get(sandbox: KnownSandbox): Promise<void> {
    const reply = await this.#client.send({ route: 'getSandbox', sandboxId: sandbox.id });
    if (reply.kind === 'done') sandbox.observe(sandboxIn(reply), reply.sentMs, reply.receivedMs);
    else if (reply.kind === 'refused') sandbox.missing();
    else await delay(SILENCE_PAUSE_MS);
  }

  /** Compares everything inside the sandbox with the model, if it is awake. */
  async read(sandbox: KnownSandbox): Promise<void> {
    await this.get(sandbox);
    if (!sandbox.mayBe('awake')) return;
    const before = sandbox.view;
    const result = await this.#exec(sandbox, READ_BACK);
    if (result === null) return;
    const found = parseReadBack(result.stdout);
    if (found === null) {
      if (!result.timedOut)
        this.#report.found('contradiction', `${sandbox.id}: an exec answered ${JSON.stringify(result).slice(0, 500)}`);
      return;
    }
    await this.get(sandbox);
    // Only a state confirmed by the views before and after held in between.
    if (sandbox.view.statusChangedAt !== before.statusChangedAt) return;
    sandbox.verify(found, Date.now());
    const sized = sandbox.view.pendingAllocation === undefined && sandbox.view.updatedAt === before.updatedAt;
    if (sized && found.processors !== sandbox.view.allocated_vcpu) {
      this.#report.found(
        'contradiction',
        `${sandbox.id} has ${found.processors} vCPUs inside and is said to have ${sandbox.view.allocated_vcpu}`,
      );
    }
  }

  async verb(sandbox: KnownSandbox, verb: Verb, respondAsync = false): Promise<void> {
    const sentMs = Date.now();
    const statuses = sandbox.statuses();
    const undo = verb === 'renew' ? (): void => undefined : sandbox.intend(verb, sentMs);
    const reply = await this.#client.send({
      route: `${verb}Sandbox`,
      sandboxId: sandbox.id,
      ...(respondAsync ? { headers: { prefer: 'respond-async' } } : {}),
    });
    this.#judge(verb, reply, sandbox, statuses);
    if (reply.kind === 'unknown') await delay(SILENCE_PAUSE_MS);
    if (reply.kind === 'refused') {
      undo();
      if (reply.code === 'sandbox_not_found') sandbox.missing();
    }
    if (reply.kind !== 'done') return;
    if (verb !== 'renew') sandbox.acknowledged(verb);
    sandbox.observe(sandboxIn(reply), reply.sentMs, reply.receivedMs);
  }

  async list(): Promise<void> {
    const before = new Map(
      this.sandboxes.map((sandbox) => [
        sandbox,
        { gone: sandbox.gone && sandbox.status === 'deleted', maybeGone: sandbox.maybeGone },
      ]),
    );
    const reply = await this.#client.send({ route: 'listSandboxes' });
    if (reply.kind !== 'done') return;
    const { sandboxes } = reply.body as { sandboxes: Sandbox[] };
    const listed = new Map(sandboxes.map((view) => [view.id, view]));
    if (sandboxes.some(({ createdAt }, index) => createdAt > (sandboxes[index - 1]?.createdAt ?? createdAt)))
      this.#report.found('contradiction', 'a list is not in order, newest first');
    for (const [sandbox, { gone, maybeGone }] of before) {
      const view = listed.get(sandbox.id);
      if (view === undefined && !maybeGone && sandbox.expiresAtMs > reply.receivedMs)
        this.#report.found('sandbox-lost', `${sandbox.id} is not in the list, it was ${sandbox.status}`);
      if (view !== undefined && gone)
        this.#report.found('contradiction', `${sandbox.id} is in the list as ${view.status}, it was deleted`);
      if (view !== undefined) sandbox.observe(view, reply.sentMs, reply.receivedMs);
    }
  }

  async #create({ ttlSeconds, respondAsync }: Operated<'create'>): Promise<void> {
    if (this.sandboxes.filter((sandbox) => !sandbox.gone).length >= LIVE_AT_MOST) return;
    const key = `${this.name}-${(this.#made += 1)}`;
    const body = {
      agent: 'agent_one',
      name: key,
      projectId: ttlSeconds === null ? this.#projects.persistent : this.#projects.ephemeral,
      ...(ttlSeconds === null ? {} : { mode: 'ephemeral', ttlSeconds }),
    };
    this.#creates.set(key, body);
    const headers = { 'idempotency-key': key, ...(respondAsync ? { prefer: 'respond-async' } : {}) };
    for (const firstSentMs = Date.now(); ;) {
      const reply = await this.#client.send({ route: 'createSandbox', body, headers });
      if (reply.kind === 'done') {
        const sandbox = new KnownSandbox(sandboxIn(reply), key, firstSentMs, this.#faults, this.#report);
        this.sandboxes.push(sandbox);
        this.#report.counts.sandboxes += 1;
        sandbox.observe(sandboxIn(reply), reply.sentMs, reply.receivedMs);
        return;
      }
      if (reply.kind === 'refused') {
        this.#report.found('contradiction', `a create was refused: ${reply.code}: ${reply.message}`);
        return;
      }
      if (Date.now() > firstSentMs + CREATE_DEADLINE_MS) {
        this.unansweredKeys.push(key);
        this.#report.found(
          'contradiction',
          `a create was not answered within ${CREATE_DEADLINE_MS / 1_000} s: ${reply.message}`,
        );
        return;
      }
      await delay(500);
    }
  }

  async #replay({ pick, otherBody }: Operated<'replay'>): Promise<void> {
    const sandbox = this.sandboxes[Math.floor(pick * this.sandboxes.length)];
    const body = this.#creates.get(sandbox?.idempotencyKey ?? '');
    if (sandbox === undefined || body === undefined) return;
    const reply = await this.#client.send({
      route: 'createSandbox',
      body: otherBody ? { ...body, name: 'another' } : body,
      headers: { 'idempotency-key': sandbox.idempotencyKey },
    });
    if (reply.kind === 'unknown') return;
    const what = `the key of ${sandbox.id} with ${otherBody ? 'another' : 'the same'} body`;
    if (otherBody) {
      if (reply.kind === 'done' || reply.code !== 'idempotency_key_conflict') {
        this.#report.found(
          'contradiction',
          `${what} was answered ${reply.kind === 'done' ? sandboxIn(reply).id : reply.code}`,
        );
      }
    } else if (reply.kind === 'refused') {
      this.#report.found('contradiction', `${what} was refused: ${reply.code}: ${reply.message}`);
    } else {
      if (sandboxIn(reply).id !== sandbox.id)
        this.#report.found('contradiction', `${what} made ${sandboxIn(reply).id}`);
      if (reply.headers.get('idempotent-replayed') !== 'true')
        this.#report.found('contradiction', `${what} does not say that it was replayed`);
      sandbox.observe(sandboxIn(reply), reply.sentMs, reply.receivedMs);
    }
  }

  async #write(sandbox: KnownSandbox, where: Place, bytes: number, number = 1): Promise<void> {
    if (sandbox.life === null && sandbox.is('awake')) await this.#beginLife(sandbox);
    if (sandbox.files.size >= FILES_AT_MOST) return;
    const files = Array.from({ length: number }, (): Written => ({
      name: `${this.name}-${(this.#files += 1)}`,
      where,
      bytes,
    }));
    // A command without a response may have run too.
    for (const file of files) sandbox.wrote(file, false);
    const result = await this.#exec(sandbox, files.map((file) => `(${writeFile(file)})`).join(' && '));
    if (result === null) return;
    if (result.exitCode === 0) for (const file of files) sandbox.wrote(file, true);
    else if (!result.timedOut && !this.#faults.excuses(['disk', 'qemu-killed'], Date.now(), Date.now(), sandbox.id))
      this.#report.found('contradiction', `${sandbox.id}: writing ended with ${JSON.stringify(result).slice(0, 500)}`);
  }

  async #beginLife(sandbox: KnownSandbox): Promise<void> {
    const token = `${this.name}-life-${(this.#files += 1)}`;
    const sentMs = Date.now();
    const result = await this.#exec(sandbox, beginLife(token));
    if (result?.exitCode === 0) sandbox.startedLife(token, Number(result.stdout), sentMs);
  }

  async #resize(sandbox: KnownSandbox, size: { vcpu: number; memoryGb: number; diskGb: number }): Promise<void> {
    const statuses = sandbox.statuses();
    const { vcpu, memoryGb } = size;
    const diskGb = Math.max(size.diskGb, sandbox.view.allocated_disk_gb, sandbox.view.pendingAllocation?.diskGb ?? 0);
    const reply = await this.#client.send({
      route: 'resizeSandbox',
      sandboxId: sandbox.id,
      body: { vcpu, memoryGb, diskGb },
    });
    this.#judge('resize', reply, sandbox, statuses);
    if (reply.kind !== 'done') return;
    const view = sandboxIn(reply);
    sandbox.observe(view, reply.sentMs, reply.receivedMs);
    const has = view.pendingAllocation ?? {
      vcpu: view.allocated_vcpu,
      memoryGb: view.allocated_memory_gb,
      diskGb: view.allocated_disk_gb,
    };
    if (has.vcpu !== vcpu || has.memoryGb !== memoryGb || has.diskGb !== diskGb)
      this.#report.note(`a resize to ${vcpu}/${memoryGb}/${diskGb} was answered with another size`);
  }

  /** Sends two concurrent calls for one sandbox, in undefined order. */
  async #overtake(sandbox: KnownSandbox, { first, second, afterMs }: Operated<'overtake'>): Promise<void> {
    const resize = {
      route: 'resizeSandbox',
      sandboxId: sandbox.id,
      body: { vcpu: 2, memoryGb: 2, diskGb: sandbox.view.allocated_disk_gb + 1 },
    };
    const intends = (verb: string): verb is 'sleep' | 'wake' | 'destroy' =>
      verb === 'sleep' || verb === 'wake' || verb === 'destroy';
    if (intends(first)) sandbox.intend(first, Date.now());
    const firstReply = this.#client.send(
      first === 'resize' ? resize : { route: `${first}Sandbox`, sandboxId: sandbox.id },
    );
    await delay(afterMs);
    if (intends(second)) {
      sandbox.intend(second, Date.now());
      const reply = await this.#client.send({ route: `${second}Sandbox`, sandboxId: sandbox.id });
      if (second === 'destroy' && reply.kind === 'done') sandbox.acknowledged('destroy');
      if (second === 'destroy' && reply.kind === 'refused')
        this.#report.found('contradiction', `${sandbox.id}: a destroy was refused: ${reply.message}`);
    } else {
      await this.#write(sandbox, 'synced', 4_096);
    }
    await firstReply;
    await this.get(sandbox);
  }

  async #exec(sandbox: KnownSandbox, command: string): Promise<ExecResult | null> {
    const statuses = sandbox.statuses();
    const body = { command, timeoutSeconds: EXEC_TIMEOUT_SECONDS };
    const reply = await this.#client.send({ route: 'execInSandbox', sandboxId: sandbox.id, body });
    this.#judge('exec', reply, sandbox, statuses);
    if (reply.kind === 'unknown') await delay(SILENCE_PAUSE_MS);
    if (reply.kind !== 'done') return null;
    const result = reply.body as ExecResult;
    if (
      result.timedOut &&
      !this.#faults.excuses(['qemu-hangs', 'guest-hangs', 'disk'], reply.sentMs, reply.receivedMs, sandbox.id)
    ) {
      this.#report.found(
        'contradiction',
        `${sandbox.id}: a command timed out without any trouble: ${command.slice(0, 60)}`,
      );
    }
    return result;
  }

  #judge(action: SandboxAction, reply: Reply, sandbox: KnownSandbox, before: ReadonlySet<SandboxStatus>): void {
    const wrong = violationOf(action, reply, new Set([...before, ...sandbox.statuses()]));
    if (wrong !== null) this.#report.found('contradiction', `${sandbox.id}: ${wrong}`);
    if (reply.kind === 'refused') this.#report.note(`${action} refused: ${reply.code}`);
  }

  /** Picks the sandbox of an operation; null when the client has none. */
  #choose({ kind, pick, fitting }: { kind: string; pick: number; fitting: boolean }): KnownSandbox | null {
    const actions: Record<string, SandboxAction> = {
      write: 'exec',
      read: 'exec',
      sleep: 'sleep',
      wake: 'wake',
      resize: 'resize',
      renew: 'renew',
      destroy: 'destroy',
    };
    const action = actions[kind];
    const live = this.sandboxes.filter((sandbox) => !sandbox.gone);
    const candidates = fitting || (live.length > 0 && pick < 0.8) ? live : this.sandboxes.slice(-8);
    const allows = (status: SandboxStatus): boolean =>
      action === undefined || SANDBOX_ACTION_RULES[action][status] === 'do';
    const worth = candidates.filter((sandbox) => fitting && (kind !== 'renew' || sandbox.ttlSeconds !== null));
    const surely = worth.filter((sandbox) => !sandbox.moving && allows(sandbox.status));
    const fit = surely.length > 0 ? surely : worth.filter((sandbox) => [...sandbox.statuses()].some(allows));
    const from = fit.length > 0 ? fit : candidates;
    return from[Math.floor(pick * from.length)] ?? null;
  }
}
