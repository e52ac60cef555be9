// A simulated month and some days: a thousand sandboxes of forty end users in five projects live at random, with crashes, resizes, ends and changed caps, on a
// clock that the test sets. Whatever the API answers is held against sums by brute force, to the millisecond; no two views may disagree.
import assert from 'node:assert/strict';
import { randomInt } from 'node:crypto';
import { after, before, test } from 'node:test';
import { SELF_HOSTED_PLAN, type Plan } from '@berth/contract/plans.ts';
import { expireSandbox } from '../../src/services/sandbox-expiry.ts';
import { settleResize } from '../../src/services/sandbox-resize.ts';
import { transitionSandbox, type Transition } from '../../src/services/sandbox-transition.ts';
import { newId } from '../../src/store/ids.ts';
import { insertProject } from '../../src/store/projects.ts';
import { lockUsageSums, rollUpUsage } from '../../src/store/usage-rollup.ts';
import { usedMs } from '../../src/store/usage-sums.ts';
import { rollUpAllUsage } from '../../src/workers/usage-rollup.ts';
import { startApi, type TestApi, type TestSession } from '../api.ts';
import { SimulatedClock } from '../simulated-clock.ts';
import { UsageModel } from '../usage-model.ts';

const SANDBOXES = 1_000;
const END_USERS = 40;
const PROJECTS = 5;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** The 31st, in a year whose February has 29 days: the second period begins on the last of them. */
const STARTS_MS = Date.UTC(2024, 0, 31, 13, 37, 11, 123);
const SECOND_STARTS_MS = Date.UTC(2024, 1, 29, 13, 37, 11, 123);
const SECOND_ENDS_MS = Date.UTC(2024, 2, 31, 13, 37, 11, 123);
const ENDS_MS = STARTS_MS + 36 * DAY_MS;
const TEAM: Plan = { ...SELF_HOSTED_PLAN, id: 'team', name: 'Team', includedMachineHours: 4_000, overageUsdPerMachineHour: 0.5 };
const RATES = { vcpuHourUsd: 1, memoryGbHourUsd: 0, diskGbHourUsd: 0 };
/** Named when it fails; BERTH_TEST_SEED runs it again. */
const SEED = Number(process.env['BERTH_TEST_SEED'] ?? randomInt(2 ** 31));

let api: TestApi;
let clock: SimulatedClock;
let admin: TestSession;
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
  const anchor = new Date(STARTS_MS);
  await api.db.updateTable('subscription').set({ plan: TEAM.id, started_at: anchor, period_anchor: anchor }).execute();
});
after(async () => {
  await clock?.close();
  await api?.close();
});

/** mulberry32: from 0 up to 1. */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A sandbox, in the size that it has. */
interface Life {
  sandboxId: string;
  projectId: string;
  endUserId: string | null;
  vcpu: number;
}

interface Event {
  atUs: number;
  run: () => Promise<void>;
}

/** The month: what happens when, who lives, and what is expected of it. */
class Month {
  readonly #random = randomOf(SEED);
  readonly #events: Event[] = [];
  readonly model = new UsageModel();
  readonly projects: string[] = [];
  readonly counts: Record<string, number> = {};
  readonly #limits = new Map<string, number>();
  #orgLimit: number | null = null;
  #overage = false;
  #nowUs = STARTS_MS * 1_000;

  get nowMs(): number {
    return Math.floor(this.#nowUs / 1_000);
  }

  get period(): { fromMs: number; endsMs: number } {
    return this.nowMs < SECOND_STARTS_MS
      ? { fromMs: STARTS_MS, endsMs: SECOND_STARTS_MS }
      : { fromMs: SECOND_STARTS_MS, endsMs: SECOND_ENDS_MS };
  }

  async live(): Promise<void> {
    for (let index = 0; index < PROJECTS; index += 1) {
      const id = newId('project');
      await insertProject(api.db, { id, org_id: api.orgId, name: `P${index}`, use_case: 'external' });
      this.projects.push(id);
    }
    for (let index = 0; index < SANDBOXES; index += 1) this.#after(this.#random() * 33 * DAY_MS, () => this.#create());
    for (let index = 0; index < 30; index += 1) this.#after(this.#random() * 36 * DAY_MS, () => this.#changeCap());
    for (let index = 0; index < 150; index += 1) this.#after(this.#random() * 36 * DAY_MS, () => this.#rollUp());
    for (let index = 0; index < 40; index += 1) this.#after(this.#random() * 36 * DAY_MS, () => this.check());
    // Where periods meet, and days.
    for (const ms of [
      SECOND_STARTS_MS - STARTS_MS - 1,
      SECOND_STARTS_MS - STARTS_MS,
      SECOND_STARTS_MS - STARTS_MS + 1,
      10 * HOUR_MS + 22 * 60_000 + 48_877,
    ]) {
      this.#after(ms, () => this.check());
    }
    for (let event = this.#next(); event !== undefined && event.atUs < ENDS_MS * 1_000; event = this.#next()) {
      this.#nowUs = event.atUs;
      await clock.set(event.atUs);
      await event.run();
    }
    this.#nowUs = ENDS_MS * 1_000;
    await clock.set(this.#nowUs);
  }

  /** Every view of the API at this instant against the model. */
  async check(): Promise<void> {
    this.#count('checks');
    const { fromMs, endsMs } = this.period;
    const window = { fromMs, toMs: this.nowMs };
    const org = await this.#usage('');
    const orgMs = this.model.usedMs(window);
    assert.deepEqual([org.periodStartsAt, org.periodEndsAt], [new Date(fromMs).toISOString(), new Date(endsMs).toISOString()]);
    assert.equal(org.usedMachineHours, orgMs / HOUR_MS);
    const cap = this.#orgLimit ?? (this.#overage ? null : TEAM.includedMachineHours);
    assert.deepEqual(
      [org.sandboxMachineHourLimit, org.sandboxMachineHourLimitOverride, org.sandboxOverageEnabled],
      [cap, this.#orgLimit, this.#overage],
    );
    assert.equal(org.remainingMachineHours, cap === null ? null : Math.max(0, Math.round(cap * HOUR_MS) - orgMs) / HOUR_MS);
    assert.equal(org.overageMachineHours, Math.max(0, orgMs - (TEAM.includedMachineHours ?? 0) * HOUR_MS) / HOUR_MS);

    let ofProjectsMs = 0;
    for (const projectId of this.projects) {
      const { usedMachineHours } = await this.#usage(`?projectId=${projectId}`);
      const expectedMs = this.model.usedMs({ ...window, projectId });
      assert.equal(usedMachineHours, expectedMs / HOUR_MS);
      ofProjectsMs += Math.round(usedMachineHours * HOUR_MS);
    }
    assert.equal(ofProjectsMs, orgMs);

    const expected = this.model.byEndUser(window);
    const { body } = await api.call('GET', `/v1/orgs/${api.orgId}/usage/end-users`);
    const endUsers: { endUserId: string; machineHours: number; estimatedCogsUsd: number }[] = body.endUsers;
    const named = [...expected].flatMap(([endUserId, sum]) => (endUserId === null ? [] : [{ endUserId, ...sum }]));
    named.sort((one, other) => other.ms - one.ms || (one.endUserId < other.endUserId ? -1 : 1));
    assert.deepEqual(
      endUsers,
      named.map(({ endUserId, ms, vcpuMs }) => ({
        endUserId,
        machineHours: ms / HOUR_MS,
        estimatedCogsUsd: Math.round((vcpuMs / HOUR_MS) * 1_000_000) / 1_000_000,
      })),
    );
    const ofEndUsersMs = endUsers.reduce((sum, { machineHours }) => sum + Math.round(machineHours * HOUR_MS), 0);
    assert.equal(ofEndUsersMs + (expected.get(null)?.ms ?? 0), orgMs);
    const endUserId = `user ${this.#below(END_USERS)}`;
    assert.equal((await this.#usage(`?endUserId=${endUserId}`)).usedMachineHours, (expected.get(endUserId)?.ms ?? 0) / HOUR_MS);
  }

  async #usage(query: string): Promise<TestApiBody> {
    const { status, body } = await api.call('GET', `/v1/orgs/${api.orgId}/usage${query}`);
    assert.equal(status, 200);
    return body;
  }

  #after(ms: number, run: () => Promise<void>): void {
    // Never on whole milliseconds alone: the ledger keeps microseconds.
    this.#events.push({ atUs: this.#nowUs + Math.floor(ms) * 1_000 + this.#below(1_000), run });
  }

  #next(): Event | undefined {
    let first = 0;
    for (const [index, { atUs }] of this.#events.entries()) if (atUs < (this.#events[first]?.atUs ?? 0)) first = index;
    return this.#events.splice(first, 1)[0];
  }

  #below(bound: number): number {
    return Math.floor(this.#random() * bound);
  }

  #count(what: string): void {
    this.counts[what] = (this.counts[what] ?? 0) + 1;
  }

  /** Some hours, mostly few. */
  #hours(mean: number): number {
    return -Math.log(1 - this.#random()) * mean * HOUR_MS;
  }

  #isAtCap(projectId: string): boolean {
    const window = { fromMs: this.period.fromMs, toMs: this.nowMs };
    const ofProject = this.#limits.get(projectId);
    if (ofProject !== undefined && this.model.usedMs({ ...window, projectId }) >= Math.round(ofProject * HOUR_MS)) return true;
    const ofOrg = this.#overage ? null : (this.#orgLimit ?? TEAM.includedMachineHours);
    return ofOrg !== null && this.model.usedMs(window) >= Math.round(ofOrg * HOUR_MS);
  }

  /** True when the call went through; it must be refused exactly when the model is at a cap. */
  async #allowed(projectId: string, path: string, body?: unknown): Promise<string | null> {
    const answer = await api.call('POST', path, { ...(body === undefined ? {} : { body }), headers: { prefer: 'respond-async' } });
    if (this.#isAtCap(projectId)) {
      assert.deepEqual([answer.status, answer.body.error?.code], [409, 'machine_hour_limit']);
      this.#count('refused at a cap');
      return null;
    }
    assert.ok(answer.status < 300, JSON.stringify(answer.body));
    return answer.body.sandbox.id;
  }

  async #go(sandboxId: string, to: Transition['to'], more: Partial<Transition> = {}): Promise<void> {
    await api.db.transaction().execute(async (trx) => {
      const { epoch } = await trx.selectFrom('sandbox').select('epoch').where('id', '=', sandboxId).executeTakeFirstOrThrow();
      const actor = { kind: 'system', id: null, userId: null } as const;
      const { outcome } = await transitionSandbox(trx, { sandboxId, epoch, to, actor, ...more });
      assert.equal(outcome, 'changed');
    });
  }

  async #create(): Promise<void> {
    const projectId = this.projects[this.#below(PROJECTS)] ?? '';
    const drawn = this.#below(END_USERS + 4);
    const endUserId = drawn < END_USERS ? `user ${drawn}` : null;
    const kind = this.#random();
    const policy =
      kind < 0.2
        ? { mode: 'ephemeral', ttlSeconds: 600 + this.#below(80_000) }
        : { persistencePolicy: kind < 0.35 ? 'always_on' : 'sleep_resume' };
    const sandboxId = await this.#allowed(projectId, `/v1/orgs/${api.orgId}/sandboxes`, {
      agent: 'agent_one',
      projectId,
      machineSize: 'small',
      ...policy,
      ...(endUserId === null ? {} : { endUserId }),
    });
    if (sandboxId === null) return this.#after(this.#hours(48), () => this.#create());
    this.#count('created');
    const { vcpu, expiresMs } = await api.db
      .selectFrom('sandbox')
      .select(['allocated_vcpu', 'expires_at'])
      .where('id', '=', sandboxId)
      .executeTakeFirstOrThrow()
      .then((row) => ({ vcpu: row.allocated_vcpu, expiresMs: row.expires_at?.getTime() ?? null }));
    const self = { sandboxId, projectId, endUserId, vcpu };
    this.#after(this.#random() * 3_000, () => this.#comeAwake(self, expiresMs === null ? kind >= 0.35 : null));
    if (expiresMs !== null) this.#after(expiresMs - this.nowMs + 1 + this.#random() * 120_000, () => this.#expire(sandboxId, expiresMs));
  }

  /** `sleeps`: null for an ephemeral one, which is left to its expiry. */
  async #comeAwake(self: Life, sleeps: boolean | null): Promise<void> {
    await this.#go(self.sandboxId, 'ready');
    this.model.wake(self, this.nowMs);
    if (sleeps === null) return;
    const awakeMs = this.#hours(sleeps ? 10 : 40);
    if (this.#random() < 0.3) this.#after(awakeMs * this.#random(), () => this.#resize(self));
    const next = this.#random();
    if (next < 0.15) this.#after(awakeMs, () => this.#crash(self, sleeps));
    else if (next < 0.4 || !sleeps) this.#after(awakeMs, () => this.#destroy(self.sandboxId));
    else this.#after(awakeMs, () => this.#sleep(self, sleeps));
  }

  async #sleep(self: Life, sleeps: boolean): Promise<void> {
    this.#count('slept');
    await this.#go(self.sandboxId, 'sleeping', { newEpoch: true });
    this.model.end(self.sandboxId, this.nowMs);
    await this.#go(self.sandboxId, 'stopped', { wakesFrom: 'snapshot' });
    this.#after(this.#hours(14), () => this.#wake(self, sleeps));
  }

  async #wake(self: Life, sleeps: boolean): Promise<void> {
    const woken = await this.#allowed(self.projectId, `/v1/sandboxes/${self.sandboxId}/wake`);
    if (woken === null) return this.#after(this.#hours(48), () => this.#wake(self, sleeps));
    this.#count('woken');
    this.#after(this.#random() * 2_000, () => this.#comeAwake(self, sleeps));
  }

  /** Its machine was lost some time ago: it is metered until its last proof of life, which may lie in a day that is summed already. */
  async #crash(self: Life, sleeps: boolean): Promise<void> {
    this.#count('crashed');
    const since = this.model.runsSince(self.sandboxId) ?? this.nowMs;
    const lastAliveMs = Math.max(since + 1, this.nowMs - Math.floor(this.#hours(8)));
    if (lastAliveMs >= this.nowMs) return this.#after(10, () => this.#crash(self, sleeps));
    await this.#go(self.sandboxId, 'failed', {
      lastAliveAt: new Date(lastAliveMs),
      wakesFrom: 'disk',
      reason: { code: 'machine_lost', message: 'made so by a test' },
    });
    this.model.end(self.sandboxId, lastAliveMs);
    this.#after(this.#hours(5), () => this.#wake(self, sleeps));
  }

  async #destroy(sandboxId: string): Promise<void> {
    this.#count('destroyed');
    await this.#go(sandboxId, 'destroying', { newEpoch: true });
    this.model.end(sandboxId, this.nowMs);
    await this.#go(sandboxId, 'deleted');
    // Attribution is the ledger's own: the row may go.
    if (this.#random() < 0.5) await api.db.deleteFrom('sandbox').where('id', '=', sandboxId).execute();
  }

  async #expire(sandboxId: string, expiresMs: number): Promise<void> {
    this.#count('expired');
    assert.equal(await expireSandbox(api.context, sandboxId), true);
    this.model.end(sandboxId, expiresMs);
    await this.#go(sandboxId, 'deleted');
  }

  async #resize(self: Life): Promise<void> {
    if (this.model.runsSince(self.sandboxId) === undefined || self.vcpu >= 8) return;
    this.#count('resized');
    const vcpu = self.vcpu * 2;
    const answer = await api.call('POST', `/v1/sandboxes/${self.sandboxId}/resize`, {
      body: { vcpu },
      headers: { prefer: 'respond-async' },
    });
    assert.equal(answer.status, 200);
    await api.db.transaction().execute(async (trx) => {
      const row = await trx.selectFrom('sandbox').selectAll().where('id', '=', self.sandboxId).executeTakeFirstOrThrow();
      const verified = { vcpu, memoryGb: row.allocated_memory_gb, diskGb: row.allocated_disk_gb };
      assert.equal(await settleResize(trx, { sandboxId: row.id, epoch: row.epoch, verified, deferred: null }), 'changed');
    });
    self.vcpu = vcpu;
    this.model.resize(self.sandboxId, vcpu, this.nowMs);
  }

  async #changeCap(): Promise<void> {
    this.#count('caps changed');
    const usedHours = this.model.usedMs({ fromMs: this.period.fromMs, toMs: this.nowMs }) / HOUR_MS;
    // Around what is used, so that some are reached.
    const limit = this.#random() < 0.4 ? null : Math.round(usedHours * (0.95 + this.#random()) * 10) / 10;
    const headers = { token: admin.token };
    if (this.#random() < 0.5) {
      this.#orgLimit = limit;
      this.#overage = this.#random() < 0.5;
      const body = { sandboxMachineHourLimit: limit, sandboxOverageEnabled: this.#overage };
      assert.equal((await api.call('PATCH', `/v1/orgs/${api.orgId}/subscription/usage-guardrails`, { body, ...headers })).status, 200);
      return;
    }
    const projectId = this.projects[this.#below(PROJECTS)] ?? '';
    const ofProject = limit === null ? null : Math.round((limit / PROJECTS) * 10) / 10;
    if (ofProject === null) this.#limits.delete(projectId);
    else this.#limits.set(projectId, ofProject);
    const path = `/v1/orgs/${api.orgId}/projects/${projectId}/usage-guardrails`;
    assert.equal((await api.call('PATCH', path, { body: { sandboxMachineHourLimit: ofProject }, ...headers })).status, 200);
  }

  /** What the worker does, or a part of it that is lost before its commit. */
  async #rollUp(): Promise<void> {
    this.#count('rolled up');
    if (this.#random() < 0.3) {
      const crash = api.db.transaction().execute(async (trx) => {
        await lockUsageSums(trx, api.orgId);
        await rollUpUsage(trx, api.orgId, 1 + this.#below(50));
        throw new Error('killed');
      });
      await assert.rejects(crash, /^Error: killed$/);
      return;
    }
    const context = { db: api.db, log: api.context.log, stopping: new AbortController().signal };
    await rollUpAllUsage(context, { leads: () => Promise.resolve(true) }, 1 + this.#below(100));
  }
}

type TestApiBody = Awaited<ReturnType<TestApi['call']>>['body'];

test(`a month of ${SANDBOXES} sandboxes is answered as brute force sums it, in every view and at every instant (seed ${SEED})`, async (t) => {
  const month = new Month();
  await month.live();
  await month.check();
  t.diagnostic(JSON.stringify({ seed: SEED, stretches: month.model.stretches, ...month.counts }));
  for (const what of ['created', 'slept', 'woken', 'crashed', 'destroyed', 'expired', 'resized', 'refused at a cap', 'rolled up']) {
    assert.ok((month.counts[what] ?? 0) > 20, `${what}: ${month.counts[what] ?? 0}`);
  }
  // The periods tile time: nothing is lost between them and nothing counted in both.
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
