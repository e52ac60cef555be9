// Never twice: the faults that only a real VM has, at every moment of a turn.
import { after, before, describe, it } from 'node:test';
import { LONG_RUN } from '../../os/test/long-run.ts';
import { SmallDisk } from '../chaos/disturbances/small-disk.ts';
import { awakeSandbox, destroySandbox } from '../world/client.ts';
import { Parts } from '../world/parts.ts';
import { runCell } from './cells.ts';
import { Conversation } from './conversation.ts';
import { inject } from './faults.ts';
import { MOMENTS, type Fault, type Moment } from './outcomes.ts';

const DISK_MIB = 6_144;
/** Bridges are the same programs on the fake driver, whose test kills them too. */
const REAL: readonly Fault[] = [
  ...(LONG_RUN ? (['kill bridge'] as const) : []),
  'kill guest daemon',
  'kill VM',
  'sleep and wake',
  'power cut',
];

/** All moments in a long run, otherwise another one for each fault. */
const momentsOf = (fault: Fault): readonly Moment[] => {
  return LONG_RUN ? MOMENTS : [MOMENTS[REAL.indexOf(fault) % MOMENTS.length] as Moment];
};

describe('never twice in a VM', () => {
  let disk: SmallDisk;
  let parts: Parts;
  before(async () => {
    disk = await SmallDisk.make(DISK_MIB);
    parts = await Parts.start({
      dataFolder: disk.folder,
      environment: {
        BERTH_SCRIPTED_AGENT: '1',
        BERTH_DISK_RESERVE_GIB: '0',
        BERTH_DISK_OVERCOMMIT: '100',
      },
    });
  });
  after(async () => {
    await parts.stop();
    await disk.remove();
  });

  for (const fault of REAL) {
    describe(fault, () => {
      let conversation: Conversation;
      before(async () => {
        const { id } = await awakeSandbox(parts.caller);
        conversation = await Conversation.create(parts.caller, id);
      });
      after(async () => {
        await destroySandbox(parts.caller, conversation.sandboxId);
      });
      for (const moment of momentsOf(fault)) {
        it(`a fault while ${moment} has the outcome of the table`, () =>
          runCell(conversation, fault, moment, (name, of) => inject(parts, name, of, disk)));
      }
    });
  }
});
