// Never twice: every fault at every moment of a turn, on the fake driver.
import { after, before, describe, it } from 'node:test';
import { awakeSandbox, destroySandbox } from '../world/client.ts';
import { Parts } from '../world/parts.ts';
import { runCell } from './cells.ts';
import { Conversation } from './conversation.ts';
import { inject } from './faults.ts';
import { FAULTS, MOMENTS, type Fault } from './outcomes.ts';

/** The fake driver's guest daemon is its VM, and its disk is the host's. */
const REAL_ONLY: readonly Fault[] = ['kill guest daemon', 'power cut'];

describe('never twice', () => {
  let parts: Parts;
  before(async () => {
    parts = await Parts.start({
      driver: 'fake',
      environment: { BERTH_SCRIPTED_AGENT: '1', BERTH_POOL_MIN: '0', BERTH_POOL_MAX: '0' },
    });
  });
  after(async () => {
    await parts.stop();
    await parts.remove();
  });

  for (const fault of FAULTS.filter((name) => !REAL_ONLY.includes(name))) {
    describe(fault, () => {
      let conversation: Conversation;
      before(async () => {
        const { id } = await awakeSandbox(parts.caller);
        conversation = await Conversation.create(parts.caller, id);
      });
      after(async () => {
        await destroySandbox(parts.caller, conversation.sandboxId);
      });
      for (const moment of MOMENTS) {
        it(`a fault while ${moment} has the outcome of the table`, () =>
          runCell(conversation, fault, moment, (name, of) => inject(parts, name, of)));
      }
    });
  }
});
