// Conformance: a VM starts, is recovered by another instance of the driver, ends, and leaves
// nothing behind, from any half-made state.
import { OPEN_EGRESS } from '@berth/protocol/egress.ts';
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { isSame, killProcess } from '@berth/os/process-identity.ts';
import type { DriverState } from '../driver.ts';
import { exec, outputOf, type ConformanceOptions, type Subject } from './subject.ts';

const EXIT_DEADLINE_MS = 20_000;

/** More saved states than any driver has steps. */
const STEPS_MAX = 10;

class Stopped extends Error {}

export function vmLifeConforms(current: () => Subject, { spec }: ConformanceOptions): void {
  describe('the life of a VM', () => {
    it('creates, runs a command, destroys, and destroys again without an error', async () => {
      const subject = current();
      const vm = await subject.create(spec);
      assert.ok(vm.saved.length > 0, 'its state was saved');
      const result = await exec(vm.client, 'echo out; echo err >&2; exit 3');
      assert.deepEqual(result, { exitCode: 3, stdout: 'out\n', stderr: 'err\n', truncated: false, timedOut: false });
      await subject.destroy(vm);
      assert.equal(await isSame(vm.running.process), false);
      await subject.driver.destroy(vm.folder, vm.saved.at(-1) ?? null);
      await subject.driver.destroy(vm.folder, null);
    });

    it('finds a VM again by its saved state after another instance took over', async () => {
      const subject = current();
      const vm = await subject.create(spec);
      await outputOf(vm.client, 'echo kept > /code/note');
      await subject.replaceDriver();
      const recovered = await subject.driver.recover(vm.folder, vm.saved.at(-1) ?? {}, OPEN_EGRESS);
      assert.deepEqual(recovered, vm.running);
      assert.deepEqual(await subject.driver.reapOrphans(new Set([vm.id])), []);
      assert.equal(await outputOf(vm.client, 'cat /code/note'), 'kept');
      await subject.destroy(vm);
      assert.equal(await subject.driver.recover(vm.folder, vm.saved.at(-1) ?? {}, OPEN_EGRESS), null);
    });

    it('reports when the process of a VM exits and frees its resources', async () => {
      const subject = current();
      const vm = await subject.create(spec);
      const watch = new AbortController();
      const exited = subject.driver.exited(
        vm.running.process,
        AbortSignal.any([watch.signal, AbortSignal.timeout(EXIT_DEADLINE_MS)]),
      );
      assert.equal(await killProcess(vm.running.process, 'SIGKILL'), true);
      const end = await exited;
      assert.equal(await isSame(vm.running.process), false, end.reason);
      assert.equal(end.code, 'process_ended');
      assert.ok(end.reason.length > 0);
      assert.ok(Date.now() - end.lastAliveUnixMs < EXIT_DEADLINE_MS);
      assert.equal(await subject.driver.recover(vm.folder, vm.saved.at(-1) ?? {}, OPEN_EGRESS), null);
      watch.abort();
      await subject.destroy(vm);
    });

    it('stops watching a process on request, and the process keeps running', async () => {
      const subject = current();
      const vm = await subject.create(spec);
      const watch = new AbortController();
      let heard = false;
      const exited = subject.driver.exited(vm.running.process, watch.signal).then(() => (heard = true));
      assert.equal(await outputOf(vm.client, 'echo alive'), 'alive');
      assert.equal(heard, false);
      watch.abort();
      await Promise.race([exited, outputOf(vm.client, 'echo alive')]);
      assert.equal(await outputOf(vm.client, 'echo alive'), 'alive');
      await subject.destroy(vm);
    });

    it('ends only VMs without a record', async () => {
      const subject = current();
      const [known, orphan] = [await subject.create(spec), await subject.create(spec)];
      await subject.replaceDriver();
      assert.ok(await subject.driver.recover(known.folder, known.saved.at(-1) ?? {}, OPEN_EGRESS));
      const reaped = await subject.driver.reapOrphans(new Set([known.id]));
      assert.ok(reaped.length > 0);
      assert.equal(await isSame(orphan.running.process), false);
      assert.equal(await outputOf(known.client, 'echo alive'), 'alive');
      assert.deepEqual(await subject.driver.reapOrphans(new Set([known.id])), []);
      await subject.destroy(orphan);
      await subject.destroy(known);
    });

    it('frees everything of a create that stopped at any step, by the state saved so far', async () => {
      const subject = current();
      let step = 0;
      for (let finished = false; !finished;) {
        step += 1;
        assert.ok(step <= STEPS_MAX);
        const { id, folder } = await subject.makeFolder();
        const saved: DriverState[] = [];
        const saveState = async (state: DriverState): Promise<void> => {
          saved.push(state);
          if (saved.length === step) throw new Stopped();
        };
        try {
          await subject.driver.create({ id, folder, spec, saveState, signal: new AbortController().signal });
          finished = true;
        } catch (error) {
          // A driver may wrap the error to name the step.
          assert.ok(error instanceof Stopped || (error as Error).cause instanceof Stopped, String(error));
        }
        await subject.driver.destroy(folder, saved.at(-1) ?? null);
        assert.deepEqual(await subject.driver.reapOrphans(new Set()), [], `after step ${step}`);
      }
      assert.ok(step > 1, 'it saves its state before it makes anything');
    });

    it('aborts a create on request, before it begins and in the middle', async () => {
      const subject = current();
      const early = await subject.makeFolder();
      const stopped = AbortSignal.abort(new Stopped());
      await assert.rejects(
        subject.driver.create({ ...early, spec, saveState: async () => {}, signal: stopped }),
        Stopped,
      );
      await subject.driver.destroy(early.folder, null);

      const late = await subject.makeFolder();
      const abort = new AbortController();
      const saved: DriverState[] = [];
      const saveState = async (state: DriverState): Promise<void> => {
        saved.push(state);
        abort.abort(new Stopped());
      };
      await assert.rejects(subject.driver.create({ ...late, spec, saveState, signal: abort.signal }));
      await subject.driver.destroy(late.folder, saved.at(-1) ?? null);
      assert.deepEqual(await subject.driver.reapOrphans(new Set()), []);
    });
  });
}
