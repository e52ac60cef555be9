// An installation with parts that are killed on purpose, and its invariants afterwards. Every
// sandbox is at rest, acknowledged changes hold, and the content of sandboxes survives. Each awake
// sandbox has one VM, no other VM exists, and destroyed sandboxes leave nothing.
import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { SANDBOX_STATES } from '@berth/contract/sandboxes/state.ts';
import type { Sandbox } from '@berth/contract/sandboxes/sandboxes.ts';
import {
  call,
  createSandbox,
  destroySandbox,
  exec,
  getSandbox,
  listSandboxes,
  waitForStatus,
  wakeSandbox,
  type CallOptions,
} from '../world/client.ts';
import { usageIntervals } from '../world/database.ts';
import { leftoversOf, processesOfVm, vmsWithSlots } from '../world/leftovers.ts';
import { Parts, type PartName, type PartsOptions } from '../world/parts.ts';
import { until } from '../../os/test/until.ts';

const SETTLE_DEADLINE_MS = 300_000;

/** Content put into a sandbox: a token on its disk, flushed, and the same in its memory. */
interface Inside {
  token: string;
  /** True if a crash may have cost its memory. */
  memoryMayBeLost: boolean;
}

export class CrashHarness {
  readonly parts: Parts;
  readonly counts = { kills: 0, checked: 0, awake: 0, asleep: 0, failed: 0, gone: 0 };
  /**
   * Responses to callers since the last recovery. `made`: must exist. `destroyed`: must be deleted.
   * `leaving`: a destroy without a response; either is correct. None of them may be unknown.
   */
  readonly #reported = new Map<string, 'made' | 'leaving' | 'destroyed'>();
  readonly #inside = new Map<string, Inside>();
  #createsSent = 0;

  private constructor(parts: Parts) {
    this.parts = parts;
  }

  static async start(options: PartsOptions = {}): Promise<CrashHarness> {
    return new CrashHarness(await Parts.start(options));
  }

  /** Destroys everything, stops, and fails when anything is left. Prints the counts. */
  async end(): Promise<void> {
    const { parts, counts } = this;
    await parts.runAll();
    for (const sandbox of await listSandboxes(parts.caller)) await destroySandbox(parts.caller, sandbox.id);
    await parts.stop();
    assert.deepEqual(await leftoversOf(parts.dataFolder), []);
    await parts.remove();
    console.log(`${counts.kills} kills, after ${counts.checked} of which nothing was lost, doubled or leaked`);
    console.log(
      `sandboxes afterwards: ${counts.awake} awake, ${counts.asleep} asleep, ` +
        `${counts.failed} failed with a reason, ${counts.gone} deleted as asked`,
    );
  }

  /** Creates a sandbox and records the response. */
  async make(options: CallOptions = {}): Promise<Sandbox> {
    this.#createsSent += 1;
    const sandbox = await createSandbox(this.parts.caller, {}, options);
    this.#reported.set(sandbox.id, 'made');
    return sandbox;
  }

  async makeAwake(): Promise<Sandbox> {
    const { id } = await this.make();
    return await waitForStatus(this.parts.caller, id, ['running', 'ready']);
  }

  /** Returns an awake sandbox with content on its disk and in its memory. */
  async makeInhabited(): Promise<Sandbox> {
    const sandbox = await this.makeAwake();
    const token = `${sandbox.id}-token`;
    const written = await exec(
      this.parts.caller,
      sandbox.id,
      `echo ${token} > /code/token && sync /code/token /code && echo ${token} > /dev/shm/token`,
    );
    assert.equal(written.exitCode, 0, written.stderr);
    this.#inside.set(sandbox.id, { token, memoryMayBeLost: false });
    return sandbox;
  }

  /** Announces the loss of the sandbox's VM; its disk must survive. */
  losesMemory(id: string): void {
    const inside = this.#inside.get(id);
    if (inside !== undefined) inside.memoryMayBeLost = true;
  }

  /** Destroys a sandbox and records the promise as soon as it is given. */
  async destroy(id: string): Promise<void> {
    this.#reported.set(id, 'leaving');
    const { status } = await call(this.parts.caller, 'POST', `/v1/sandboxes/${id}/destroy`);
    if (status !== 200) throw new Error(`a destroy was answered ${status}`);
    this.#reported.set(id, 'destroyed');
    await waitForStatus(this.parts.caller, id, ['deleted']);
  }

  /** Runs the story with one part armed, awaits its crash, and checks the state after restart. */
  async crashOf(name: PartName, point: string, story: () => Promise<void>): Promise<void> {
    const { parts } = this;
    await parts.arm(name, point);
    const ending = attempt(story);
    await Promise.race([parts.ended(name), delay(SETTLE_DEADLINE_MS, undefined, { ref: false })]);
    if (parts.isRunning(name)) {
      const how = await Promise.race([ending, delay(1_000, 'the story is still under way')]);
      assert.fail(
        `${point} was not reached (${how instanceof Error ? how.message : String(how)})\n${parts.log.slice(-3_000)}`,
      );
    }
    this.counts.kills += 1;
    await parts.arm(name, null);
    await parts.run(name);
    await ending;
    await this.recovered();
  }

  /** Starts a part armed with a point of its start, then checks as {@link crashOf}. */
  async crashAtStartOf(name: PartName, point: string): Promise<void> {
    const { parts } = this;
    await parts.kill(name);
    await parts.arm(name, point);
    const started = await attempt(() => parts.run(name));
    if (started instanceof Error) {
      assert.match(started.message, /signal SIGKILL/);
    } else {
      await Promise.race([parts.ended(name), delay(SETTLE_DEADLINE_MS, undefined, { ref: false })]);
      assert.equal(parts.isRunning(name), false, `${point} was not reached\n${parts.log.slice(-3_000)}`);
    }
    this.counts.kills += 1;
    await parts.arm(name, null);
    await parts.runAll();
    await this.recovered();
  }

  async killed(...names: PartName[]): Promise<void> {
    await Promise.all(names.map((name) => this.parts.kill(name)));
    this.counts.kills += 1;
  }

  /** Restarts killed parts, awaits rest, compares service and host, and cleans up. */
  async recovered(): Promise<void> {
    const { parts, counts } = this;
    await parts.runAll();
    const { caller, dataFolder } = parts;
    const promises = [...this.#reported];
    const sent = this.#createsSent;
    this.#reported.clear();
    this.#createsSent = 0;
    const sandboxes = await this.#settled();
    for (const sandbox of sandboxes) await this.#inspect(sandbox);
    for (const [id, what] of promises) {
      const { status } = await getSandbox(caller, id);
      if (status === 'deleted') counts.gone += 1;
      if (what !== 'leaving') {
        assert.equal(
          status === 'deleted',
          what === 'destroyed',
          `a caller was told ${what} of ${id}, and it is ${status}`,
        );
      }
    }
    assert.ok(sandboxes.length <= sent, `${sent} creates made ${sandboxes.length} sandboxes`);
    for (const sandbox of sandboxes) assert.equal((await destroySandbox(caller, sandbox.id)).status, 'deleted');
    let left: string[] = [];
    await until(
      () => `nothing is left of destroyed sandboxes: ${left.join(', ')}`,
      async () => ((left = await leftoversOf(dataFolder, { idle: false })).length === 0 ? true : null),
    );
    const open = (await usageIntervals(dataFolder)).filter(({ toMs }) => toMs === null);
    assert.deepEqual(open, [], 'an interval is open, and no sandbox is there');
    counts.checked += 1;
  }

  /** All sandboxes, once each is at rest and exactly the awake ones have VMs. */
  async #settled(): Promise<Sandbox[]> {
    const { parts } = this;
    let sandboxes: Sandbox[] = [];
    const shown = (): string => JSON.stringify(sandboxes.map(({ id, status }) => ({ id, status })));
    await until(
      () => `every sandbox is at rest with its machine: ${shown()}\n${parts.log.slice(-4_000)}`,
      async () => {
        const listed = await attempt(() => listSandboxes(parts.caller));
        if (listed instanceof Error) return null;
        sandboxes = listed;
        const awake = sandboxes.filter(({ status }) => SANDBOX_STATES[status].awake).map(({ id }) => id);
        const machines = await vmsWithSlots(parts.dataFolder);
        const settled = sandboxes.every(({ status }) => SANDBOX_STATES[status].settled);
        if (!settled || JSON.stringify(machines.sort()) !== JSON.stringify(awake.sort())) return null;
        // A sandbox whose process has just died is awake until the death is noticed.
        for (const id of awake) if ((await processesOfVm(id)).length === 0) return null;
        return true;
      },
      SETTLE_DEADLINE_MS,
    );
    return sandboxes;
  }

  async #inspect(sandbox: Sandbox): Promise<void> {
    const { counts } = this;
    const { caller } = this.parts;
    const { id, status } = sandbox;
    if (status === 'failed') {
      assert.ok((sandbox.statusReason?.message.length ?? 0) > 0, `${id} failed without a reason`);
      counts.failed += 1;
      if (sandbox.wakesFrom === null) {
        assert.ok(
          !this.#inside.has(id),
          `${id} held something, and nothing wakes it: ${JSON.stringify(sandbox.statusReason)}`,
        );
        return;
      }
    } else if (status === 'stopped') {
      counts.asleep += 1;
    } else {
      counts.awake += 1;
    }
    if (!SANDBOX_STATES[status].awake) await wakeSandbox(caller, id);
    assert.equal((await processesOfVm(id)).length, 1, `${id} has not exactly one QEMU`);
    const inside = this.#inside.get(id);
    const { stdout } = await exec(caller, id, 'echo alive; cat /code/token; cat /dev/shm/token');
    const [alive, disk, memory] = stdout.split('\n');
    assert.equal(alive, 'alive');
    if (inside === undefined) return;
    assert.equal(disk, inside.token, `${id} was ${status}`);
    if (!inside.memoryMayBeLost)
      assert.equal(memory, inside.token, `${id} was ${status} and lost what was in its memory`);
  }
}

/** Returns the value or the error: any outcome is allowed while the service is killed. */
export async function attempt<T>(act: () => Promise<T>): Promise<T | Error> {
  try {
    return await act();
  } catch (error) {
    return error as Error;
  }
}
