// The conformance suite with the fake driver.
import { conformance } from '../../../src/vm/conformance/conformance.ts';
import { FakeDriver } from '../../../src/vm/fake/driver.ts';
import { findMarked } from '../../../src/vm/fake/find.ts';

const instanceId = `conf${process.pid}`;

conformance('fake', () => new FakeDriver(instanceId), {
  spec: { vcpu: 1, memoryMib: 1_024, diskGib: 10, hostname: 'berth', sshAuthorizedKeys: [] },
  biggerSpecs: [],
  uplink: null,
  prepareDeadlineMs: 60_000,
  leftovers: async () =>
    (await findMarked((mark) => mark.instanceId === instanceId)).map(
      ({ process, mark }) => `process ${process.pid} of ${mark.vmId}`,
    ),
});
