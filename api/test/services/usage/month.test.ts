// Simulates a month and some days: a thousand sandboxes of forty end users in five projects, with
// random crashes, resizes, ends and changed caps, on a clock set by the test. Every response of the
// API is compared with sums by brute force, to the millisecond.
//
// The clock stops at some thousand instants, at random microseconds, and all due events happen
// there. First, in turn, events that change past usage (a VM lost earlier, an expiry, a cap); then
// the others concurrently, over many connections. These do not change past usage, so in any order
// the results must match the model.
//
// Half of the sandboxes use the services, with caps, statuses and steps. The intervals of the
// others are written by the ledger's own statements: most of the month in a fifth of the
// statements.
import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { after, before, test } from 'node:test';
import { SELF_HOSTED_PLAN, type Plan } from '@berth/contract/billing/plans.ts';
import type { Actor } from '../../../src/rules/access/access.ts';
import { CodedError } from '../../../src/rules/coded-error.ts';
import { createSandbox } from '../../../src/services/sandboxes/create.ts';
import { expireSandbox } from '../../../src/services/sandboxes/ephemeral.ts';
import { resizeSandbox, settleResize } from '../../../src/services/sandboxes/resize.ts';
import { transitionSandbox, type Transition } from '../../../src/services/sandboxes/transition.ts';
import { wakeSandbox } from '../../../src/services/sandboxes/wake.ts';
import { newId } from '../../../src/store/database/ids.ts';
import { insertProject } from '../../../src/store/orgs/projects.ts';
import type { SandboxRow } from '../../../src/store/database/schema.ts';
import { closeUsageInterval, openUsageInterval, splitUsageInterval } from '../../../src/store/usage/usage.ts';
import { lockUsageSums, rollUpUsage } from '../../../src/store/usage/rollup.ts';
import { usedMs } from '../../../src/store/usage/sums.ts';
import { rollUpAllUsage } from '../../../src/workers/usage/rollup.ts';
import { startApi, type TestApi, type TestSession } from '../../world/api.ts';
import { CapModel } from './cap-model.ts';
import { below, exponential, streamsOf, type Random } from './seeded-random.ts';
import { SimulatedClock } from './simulated-clock.ts';
import { Timeline, type Event } from './timeline.ts';
import { UsageModel } from './usage-model.ts';

const SANDBOXES = 1_000;
const END_USERS = 40;
const PROJECTS = 5;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** The 31st, in a leap year: the second period begins on 29 February. */
const STARTS_MS = Date.UTC(2024, 0, 31, 13, 37, 11, 123);
const SECOND_STARTS_MS = Date.UTC(2024, 1, 29, 13, 37, 11, 123);
const SECOND_ENDS_MS = Date.UTC(2024, 2, 31, 13, 37, 11, 123);
const DAYS = 36;
const ENDS_MS = STARTS_MS + DAYS * DAY_MS;
/** Mean time between instants. */
const GAP_MS = 20 * 60_000;
/** Checked exactly: bounds of periods and of days. */
const BOUNDS_MS = [SECOND_STARTS_MS - 1, SECOND_STARTS_MS, SECOND_STARTS_MS + 1, Date.UTC(2024, 1, 1)];
const TEAM: Plan = {
  ...SELF_HOSTED_PLAN,
  id: 'team',
  name: 'Team',
  includedMachineHours: 4_000,
  overageUsdPerMachineHour: 0.5,
};
const RATES = { vcpuHourUsd: 1, memoryGbHourUsd: 0, diskGbHourUsd: 0 };
/** Printed on failure; BERTH_TEST_SEED repeats it. */
const SEED = Number(process.env['BERTH_TEST_SEED'] ?? randomInt(2 ** 31));

let api: TestApi;
let clock: SimulatedClock;
let admin: TestSession;
let actor: Actor;
const RESPOND_ASYNC = { respondAsync: true, signal: new AbortController().signal };
before(async () => {
  api = await startApi({
    durable: false,
    plans: [TEAM],
    settings: { machineRates: RATES },
    prepareDatabase: async (url) => {
      clock = await SimulatedClock.start(url, new Date(STARTS_MS));
    },
  });
  admin = await api.makeSession({ role: 'owner', minutes: 100 * 24 * 60 });
  actor = {
    kind: 'api_key',
    id: newId('apiKey'),
    userId: api.userId,
    requestId: null,
    orgId: api.orgId,
    scopes: null,
    role: 'owner',
  };
  const anchor = new Date(STARTS_MS);
  await api.db.updateTable('subscription').set({ plan: TEAM.id, started_at: anchor, period_anchor: anchor }).execute();
});
after(async () => {
  await clock?.close();
  await api?.close();
});

/**
 * Separate random numbers for each sandbox, so that a seed gives the same month for any order of
 * concurrent events.
 */
const streamOf = streamsOf(SEED);
/** Random hours in milliseconds. */
const hours = (random: Random, mean: number): number => exponential(random, mean) * HOUR_MS;

/** A sandbox, with its current size. */
interface Life {
  sandboxId: string;
  projectId: string;
  endUserId: string | null;
  vcpu: number;
  epoch: number;
  random: Random;
  /**
   * Row of a sandbox without VM and status, whose intervals the ledger's own statements write;
   * null: it uses the services.
   */
  plain: SandboxRow | null;
}

/** Ascending, in microseconds, until the end: some thousand random instants, and the bounds. */
function drawInstants(random: Random): number[] {
  const instants = BOUNDS_MS.map((ms) => ms * 1_000 + below(random, 1_000));
  for (let ms = STARTS_MS + 1; ms < ENDS_MS; ms += 1 + exponential(random, GAP_MS))
    instants.push(Math.floor(ms) * 1_000 + below(random, 1_000));
  return instants.sort((one, other) => one - other);
}

/** The month: its events, its sandboxes and the expected results. */
class Month {
  readonly #timeline = new Timeline(STARTS_MS, drawInstants(streamOf(-2)));
  readonly model = new UsageModel();
  readonly projects: string[] = [];
  readonly counts: Record<string, number> = {};
  readonly #caps = new CapModel(TEAM.includedMachineHours);

  get nowMs(): number {
    return this.#timeline.nowMs;
  }

  get period(): { fromMs: number; endsMs: number } {
    return this.nowMs < SECOND_STARTS_MS
      ? { fromMs: STARTS_MS, endsMs: SECOND_STARTS_MS }
      : { fromMs: SECOND_STARTS_MS, endsMs: SECOND_ENDS_MS };
  }

  get #window(): { fromMs: number; toMs: number } {
    return { fromMs: this.period.fromMs, toMs: this.nowMs };
  }

  async live(): Promise<void> {
    for (let index = 0; index < PROJECTS; index += 1) {
      const id = newId('project');
      await insertProject(api.db, { id, org_id: api.orgId, name: `P${index}`, use_case: 'external' });
      this.projects.push(id);
    }
    for (let index = 0; index < SANDBOXES; index += 1) {
      const random = streamOf(index);
      this.#at(STARTS_MS + random() * 33 * DAY_MS, 'now', newId('sandbox'), () =>
        this.#create(random, index % 3 !== 0),
      );
    }
    let streams = SANDBOXES;
    const often = (count: number, turn: Event['turn'], of: string, run: (random: Random) => Promise<void>): void => {
      for (let index = 0; index < count; index += 1) {
        const random = streamOf((streams += 1));
        this.#at(STARTS_MS + random() * DAYS * DAY_MS, turn, of, () => run(random));
      }
    };
    often(30, 'before', 'caps', (random) => this.#changeCap(random));
    often(150, 'now', 'sums', (random) => this.#rollUp(random));
    often(40, 'now', 'views', (random) => this.check(random));
    for (const ms of BOUNDS_MS) this.#at(ms, 'now', 'views', () => this.check(streamOf(ms)));
    await this.#timeline.run(clock, ENDS_MS);
  }

  /** Compares every view of the API at this instant with the model. */
  async check(random: Random): Promise<void> {
    this.#count('checks');
    const [{ fromMs, endsMs }, window] = [this.period, this.#window];
    const org = await this.#usage('');
    const orgMs = this.model.usedMs(window);
    assert.deepEqual(
      [org.periodStartsAt, org.periodEndsAt],
      [new Date(fromMs).toISOString(), new Date(endsMs).toISOString()],
    );
    assert.equal(org.usedMachineHours, orgMs / HOUR_MS);
    const cap = this.#caps.shown;
    assert.deepEqual(
      [org.sandboxMachineHourLimit, org.sandboxMachineHourLimitOverride, org.sandboxOverageEnabled],
      [cap, this.#caps.orgLimit, this.#caps.overage],
    );
    assert.equal(
      org.remainingMachineHours,
      cap === null ? null : Math.max(0, Math.round(cap * HOUR_MS) - orgMs) / HOUR_MS,
    );
    assert.equal(org.overageMachineHours, Math.max(0, orgMs - (TEAM.includedMachineHours ?? 0) * HOUR_MS) / HOUR_MS);

    const ofProjects = await Promise.all(
      this.projects.map(async (projectId) => {
        const { usedMachineHours } = await this.#usage(`?projectId=${projectId}`);
        assert.equal(usedMachineHours, this.model.usedMs({ ...window, projectId }) / HOUR_MS);
        return Math.round(usedMachineHours * HOUR_MS);
      }),
    );
    assert.equal(
      ofProjects.reduce((sum, ms) => sum + ms),
      orgMs,
    );

    const daily = await api.call('GET', `/v1/orgs/${api.orgId}/usage/daily?days=40`);
    assert.deepEqual(daily.body.days, this.model.byDay(40, window.toMs));
    const expected = this.model.byEndUser(window);
    const { body } = await api.call('GET', `/v1/orgs/${api.orgId}/usage/end-users`);
    const endUsers: { endUserId: string; machineHours: number; estimatedCogsUsd: number }[] = body.endUsers;
    assert.deepEqual(endUsers, this.model.ranking(window));
    const ofEndUsersMs = endUsers.reduce((sum, { machineHours }) => sum + Math.round(machineHours * HOUR_MS), 0);
    assert.equal(ofEndUsersMs + (expected.get(null)?.ms ?? 0), orgMs);
    const endUserId = `user ${below(random, END_USERS)}`;
    assert.equal(
      (await this.#usage(`?endUserId=${endUserId}`)).usedMachineHours,
      (expected.get(endUserId)?.ms ?? 0) / HOUR_MS,
    );
  }

  async #usage(query: string): Promise<TestApiBody> {
    const { status, body } = await api.call('GET', `/v1/orgs/${api.orgId}/usage${query}`);
    assert.equal(status, 200);
    return body;
  }

  #at(ms: number, turn: Event['turn'], of: string, run: () => Promise<void>): void {
    this.#timeline.at(ms, { turn, of, run });
  }

  #after(
    ms: number,
    { sandboxId }: Pick<Life, 'sandboxId'>,
    run: () => Promise<void>,
    turn: Event['turn'] = 'now',
  ): void {
    this.#at(this.nowMs + ms, turn, sandboxId, run);
  }

  #count(what: string): void {
    this.counts[what] = (this.counts[what] ?? 0) + 1;
  }

  #isAtCap(projectId: string): boolean {
    return this.#caps.isReached(this.model, this.#window, projectId);
  }

  /**
   * Returns the result, or null after a refusal, which must occur exactly when the model is at a
   * cap.
   */
  async #allowed(projectId: string, asked: Promise<SandboxRow>): Promise<SandboxRow | null> {
    const [answer] = await Promise.allSettled([asked]);
    if (!this.#isAtCap(projectId)) {
      if (answer.status === 'rejected') throw answer.reason;
      return answer.value;
    }
    assert.ok(answer.status === 'rejected' && answer.reason instanceof CodedError);
    assert.equal(answer.reason.code, 'machine_hour_limit');
    this.#count('refused at a cap');
    return null;
  }

  /** Passes through the statuses in turn, in a transaction. */
  async #transitionThrough(
    self: Life,
    ...statuses: Omit<Transition, 'sandboxId' | 'epoch' | 'actor'>[]
  ): Promise<void> {
    await api.db.transaction().execute(async (trx) => {
      for (const status of statuses) {
        const system = { kind: 'system', id: null, userId: null } as const;
        const result = await transitionSandbox(trx, {
          sandboxId: self.sandboxId,
          epoch: self.epoch,
          actor: system,
          ...status,
        });
        assert.ok(result.outcome === 'changed');
        self.epoch = result.sandbox.epoch;
      }
    });
  }

  async #create(random: Random, mayBePlain: boolean): Promise<void> {
    const projectId = this.projects[below(random, PROJECTS)] ?? '';
    const drawn = below(random, END_USERS + 4);
    const endUserId = drawn < END_USERS ? `user ${drawn}` : null;
    const kind = random();
    const again = (): void =>
      this.#at(this.nowMs + hours(random, 144), 'now', newId('sandbox'), () => this.#create(random, mayBePlain));
    if (mayBePlain && kind >= 0.2) {
      if (this.#isAtCap(projectId)) return again();
      const plain = await api.makeSandbox('provisioning', { project_id: projectId, end_user_id: endUserId });
      this.#count('created');
      const self: Life = {
        sandboxId: plain.id,
        projectId,
        endUserId,
        vcpu: plain.allocated_vcpu,
        epoch: plain.epoch,
        random,
        plain,
      };
      return this.#after(1, self, () => this.#becomeAwake(self, kind >= 0.35));
    }
    const policy =
      kind < 0.2
        ? { mode: 'ephemeral' as const, ttlSeconds: 600 + below(random, 80_000) }
        : { persistencePolicy: kind < 0.35 ? ('always_on' as const) : ('sleep_resume' as const) };
    const body = {
      agent: 'agent_one' as const,
      projectId,
      machineSize: 'small' as const,
      ...policy,
      ...(endUserId === null ? {} : { endUserId }),
    };
    const created = createSandbox(api.context, actor, api.orgId, body, RESPOND_ASYNC).then(({ sandbox }) => sandbox);
    const row = await this.#allowed(projectId, created);
    if (row === null) return again();
    this.#count('created');
    const self: Life = {
      sandboxId: row.id,
      projectId,
      endUserId,
      vcpu: row.allocated_vcpu,
      epoch: row.epoch,
      random,
      plain: null,
    };
    const expiresMs = row.expires_at?.getTime() ?? null;
    this.#after(1, self, () => this.#becomeAwake(self, expiresMs === null ? kind >= 0.35 : null));
    if (expiresMs !== null)
      this.#at(expiresMs + 1 + random() * 120_000, 'before', self.sandboxId, () => this.#expire(self, expiresMs));
  }

  /** `sleeps`: null for an ephemeral sandbox, which is left to its expiry. */
  async #becomeAwake(self: Life, sleeps: boolean | null): Promise<void> {
    // May expire before it ever ran.
    if (self.epoch === 0) return;
    const { random } = self;
    if (self.plain !== null) await openUsageInterval(api.db, self.plain);
    else await this.#transitionThrough(self, { to: 'ready' });
    this.model.wake(self, this.nowMs);
    if (sleeps === null) return;
    const awakeMs = hours(random, sleeps ? 10 : 40);
    if (random() < 0.3) this.#after(awakeMs * random(), self, () => this.#resize(self));
    const next = random();
    if (next < 0.15) this.#after(awakeMs, self, () => this.#crash(self, sleeps), 'before');
    else if (next < 0.4 || !sleeps) this.#after(awakeMs, self, () => this.#destroy(self));
    else this.#after(awakeMs, self, () => this.#sleep(self, sleeps));
  }

  async #sleep(self: Life, sleeps: boolean): Promise<void> {
    this.#count('slept');
    if (self.plain !== null) await closeUsageInterval(api.db, self.sandboxId);
    else
      await this.#transitionThrough(self, { to: 'sleeping', newEpoch: true }, { to: 'stopped', wakesFrom: 'snapshot' });
    this.model.end(self.sandboxId, this.nowMs);
    this.#after(hours(self.random, 14), self, () => this.#wake(self, sleeps));
  }

  async #wake(self: Life, sleeps: boolean): Promise<void> {
    const again = (): void => this.#after(hours(self.random, 144), self, () => this.#wake(self, sleeps));
    if (self.plain === null) {
      const row = await this.#allowed(self.projectId, wakeSandbox(api.context, actor, self.sandboxId, RESPOND_ASYNC));
      if (row === null) return again();
      self.epoch = row.epoch;
    } else if (this.#isAtCap(self.projectId)) {
      return again();
    }
    this.#count('woken');
    this.#after(1, self, () => this.#becomeAwake(self, sleeps));
  }

  /**
   * Loses the VM some time ago: it is metered until its last proof of life, possibly on a day that
   * is already summed.
   */
  async #crash(self: Life, sleeps: boolean): Promise<void> {
    const since = this.model.runsSince(self.sandboxId) ?? this.nowMs;
    const lastAliveMs = Math.max(since + 1, this.nowMs - Math.floor(hours(self.random, 8)));
    if (lastAliveMs >= this.nowMs) return this.#after(10, self, () => this.#crash(self, sleeps), 'before');
    this.#count('crashed');
    const reason = { code: 'machine_lost', message: 'made so by a test' };
    const lastAliveAt = new Date(lastAliveMs);
    if (self.plain !== null) await closeUsageInterval(api.db, self.sandboxId, lastAliveAt);
    else await this.#transitionThrough(self, { to: 'failed', lastAliveAt, wakesFrom: 'disk', reason });
    this.model.end(self.sandboxId, lastAliveMs);
    this.#after(hours(self.random, 5), self, () => this.#wake(self, sleeps));
  }

  async #destroy(self: Life): Promise<void> {
    this.#count('destroyed');
    if (self.plain !== null) await closeUsageInterval(api.db, self.sandboxId);
    else await this.#transitionThrough(self, { to: 'destroying', newEpoch: true }, { to: 'deleted' });
    this.model.end(self.sandboxId, this.nowMs);
    // The ledger holds the attribution: the row may be deleted.
    if (self.random() < 0.5) await api.db.deleteFrom('sandbox').where('id', '=', self.sandboxId).execute();
  }

  async #expire(self: Life, expiresMs: number): Promise<void> {
    this.#count('expired');
    assert.equal(await expireSandbox(api.context, self.sandboxId), true);
    if (this.model.runsSince(self.sandboxId) !== undefined) this.model.end(self.sandboxId, expiresMs);
    self.epoch += 1;
    await this.#transitionThrough(self, { to: 'deleted' });
    self.epoch = 0;
  }

  async #resize(self: Life): Promise<void> {
    if (this.model.runsSince(self.sandboxId) === undefined || self.vcpu >= 8) return;
    this.#count('resized');
    const vcpu = self.vcpu * 2;
    if (self.plain === null) await this.#resizeLive(self, vcpu);
    else await this.#split({ ...self.plain, allocated_vcpu: vcpu });
    self.vcpu = vcpu;
    if (self.plain !== null) self.plain = { ...self.plain, allocated_vcpu: vcpu };
    this.model.resize(self.sandboxId, vcpu, this.nowMs);
  }

  async #split(sandbox: SandboxRow): Promise<void> {
    await api.db.transaction().execute((trx) => splitUsageInterval(trx, sandbox));
  }

  async #resizeLive(self: Life, vcpu: number): Promise<void> {
    const row = await resizeSandbox(api.context, actor, self.sandboxId, { vcpu }, RESPOND_ASYNC);
    const verified = { vcpu, memoryGb: row.allocated_memory_gb, diskGb: row.allocated_disk_gb };
    const settled = await api.db
      .transaction()
      .execute((trx) => settleResize(trx, { sandboxId: row.id, epoch: row.epoch, verified, deferred: null }));
    assert.equal(settled, 'changed');
    self.epoch = row.epoch;
  }

  async #changeCap(random: Random): Promise<void> {
    this.#count('caps changed');
    const usedHours = this.model.usedMs(this.#window) / HOUR_MS;
    // Near the used hours, so that some caps are reached.
    const limit = random() < 0.4 ? null : Math.round(usedHours * (0.95 + random()) * 10) / 10;
    if (random() < 0.5) {
      this.#caps.orgLimit = limit;
      this.#caps.overage = random() < 0.5;
      const body = { sandboxMachineHourLimit: limit, sandboxOverageEnabled: this.#caps.overage };
      return await this.#setGuardrails('subscription', body);
    }
    const projectId = this.projects[below(random, PROJECTS)] ?? '';
    const ofProject = limit === null ? null : Math.round((limit / PROJECTS) * 10) / 10;
    this.#caps.setProject(projectId, ofProject);
    await this.#setGuardrails(`projects/${projectId}`, { sandboxMachineHourLimit: ofProject });
  }

  async #setGuardrails(of: string, body: object): Promise<void> {
    const path = `/v1/orgs/${api.orgId}/${of}/usage-guardrails`;
    assert.equal((await api.call('PATCH', path, { body, token: admin.token })).status, 200);
  }

  /** Runs the worker's roll-up, or a part of it that is rolled back. */
  async #rollUp(random: Random): Promise<void> {
    this.#count('rolled up');
    if (random() < 0.3) {
      const crash = api.db.transaction().execute(async (trx) => {
        assert.ok(await lockUsageSums(trx, api.orgId));
        await rollUpUsage(trx, api.orgId, 1 + below(random, 50));
        throw new Error('killed');
      });
      await assert.rejects(crash, /^Error: killed$/);
      return;
    }
    const context = { db: api.db, log: api.context.log, stopping: new AbortController().signal };
    await rollUpAllUsage(context, { isLeader: () => Promise.resolve(true) }, 1 + below(random, 100));
  }
}

type TestApiBody = Awaited<ReturnType<TestApi['call']>>['body'];

test(`a month of ${SANDBOXES} sandboxes equals its brute-force sums in every view (seed ${SEED})`, async (t) => {
  const month = new Month();
  await month.live();
  await month.check(streamOf(-1));
  t.diagnostic(JSON.stringify({ seed: SEED, stretches: month.model.stretches, ...month.counts }));
  const happened = ['created', 'slept', 'woken', 'crashed', 'destroyed', 'expired', 'resized', 'rolled up'];
  for (const what of [...happened, 'refused at a cap'])
    assert.ok((month.counts[what] ?? 0) > 20, `${what}: ${month.counts[what] ?? 0}`);

  // The periods tile time: no gap, and no overlap.
  const at = new Date(ENDS_MS);
  const inWindow = (fromMs: number, toMs: number): Promise<number> =>
    usedMs(api.db, { orgId: api.orgId, from: new Date(fromMs), to: new Date(toMs), at });
  const [first, second, both] = [
    await inWindow(STARTS_MS, SECOND_STARTS_MS),
    await inWindow(SECOND_STARTS_MS, SECOND_ENDS_MS),
    await inWindow(STARTS_MS, SECOND_ENDS_MS),
  ];
  assert.equal(first, month.model.usedMs({ fromMs: STARTS_MS, toMs: SECOND_STARTS_MS }));
  assert.equal(first + second, both);
  assert.ok(first > 1_000 * HOUR_MS && second > 100 * HOUR_MS);
});
