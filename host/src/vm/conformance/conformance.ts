// Conformance suite that every driver must pass, called by a test file of each. Skips what a
// driver's capability flags exclude.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { VmDriver } from '../driver.ts';
import { agentsConform } from './agents.ts';
import { filesConform } from './files.ts';
import { identityConforms } from './identity.ts';
import { isolationConforms } from './isolation.ts';
import { vmLifeConforms } from './vm-life.ts';
import { modelsConform } from './models.ts';
import { networkConforms } from './network.ts';
import { sizeConforms } from './size.ts';
import { sleepConforms } from './sleep.ts';
import { streamsConform } from './streams.ts';
import { Subject, type ConformanceOptions } from './subject.ts';

/**
 * Declares the suite. `makeDriver` returns an unprepared instance; all instances belong to one
 * installation, and only one is in use at a time.
 */
export function conformance(name: string, makeDriver: () => VmDriver, options: ConformanceOptions): void {
  describe(`the ${name} driver`, () => {
    const { capabilities } = makeDriver();
    let subject: Subject;
    before(
      async () => {
        subject = await Subject.prepare(makeDriver);
      },
      { timeout: options.prepareDeadlineMs },
    );
    after(async () => {
      await subject.close();
    });
    const current = (): Subject => subject;

    vmLifeConforms(current, options);
    filesConform(current, options);
    agentsConform(current, options, capabilities.isolates);
    modelsConform(current, options, capabilities);
    identityConforms(current, options, capabilities);
    if (capabilities.hotplug) sizeConforms(current, options);

    streamsConform(current, options, capabilities);
    sleepConforms(current, options, capabilities);
    if (capabilities.isolates) isolationConforms(current, options);

    if (capabilities.network) networkConforms(current, options);

    it('leaves nothing on the host once its VMs are destroyed and it is closed', async () => {
      await subject.driver.close();
      assert.deepEqual(await options.leftovers(), []);
      await subject.replaceDriver();
    });
  });
}
