// Conformance: a restored guest reaches the internet and DNS and nothing else: not the host, its
// neighbours or another guest, by IPv4 or IPv6. The host reaches every closed target first, so that
// silence proves a firewall and not a dead target.
import { OPEN_EGRESS } from '@berth/protocol/egress.ts';
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { GUEST_NETWORK, GUEST_PORT } from '@berth/protocol/guest.ts';
import {
  outputOf,
  type ConformanceOptions,
  type ConformanceUplink,
  type Subject,
  type SubjectVm,
  type Target,
} from './subject.ts';

/** Prints, as JSON, the targets that accept a connection within 3 s; one thread per target. */
const PROBE = `
import json, socket, sys, threading
targets, open_ones = json.loads(sys.argv[1]), []
def probe(target):
    try:
        socket.create_connection((target["address"], target["port"]), 3).close()
        open_ones.append(target)
    except OSError:
        pass
threads = [threading.Thread(target=probe, args=(target,)) for target in targets]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(json.dumps(open_ones))
`;

export function networkConforms(current: () => Subject, { spec, uplink: given }: ConformanceOptions): void {
  if (given === null) throw new Error('a driver with a network needs an uplink to conform in');

  const uplink: ConformanceUplink = given;

  describe('the network of a VM', () => {
    let one: SubjectVm;
    let two: SubjectVm;
    before(async () => {
      one = await current().create(spec);
      two = await current().create(spec);
    });
    after(async () => {
      await current().destroy(one);
      await current().destroy(two);
    });

    async function openTo(vm: SubjectVm, targets: readonly Target[]): Promise<string[]> {
      const text = await outputOf(vm.client, `python3 - '${JSON.stringify(targets)}' <<'PROBE'\n${PROBE}PROBE`);
      return (JSON.parse(text) as Target[]).map(said).sort();
    }

    async function assertClosed(vm: SubjectVm, targets: readonly Target[]): Promise<void> {
      assert.ok(targets.length > 0);
      assert.deepEqual(
        (await uplink.answering(targets)).map(said).sort(),
        targets.map(said).sort(),
        'all of them answer the machine',
      );
      assert.deepEqual(await openTo(vm, targets), []);
    }

    const rules = (vm: () => SubjectVm): void => {
      it('reaches the internet', async () => {
        assert.deepEqual(await openTo(vm(), uplink.internet), uplink.internet.map(said).sort());
      });

      it('resolves names by the resolver at its gateway', async () => {
        const { name, address } = uplink.name;
        assert.equal(await outputOf(vm().client, `getent ahostsv4 ${name} | awk 'NR == 1 {print $1}'`), address);
        assert.equal(
          await outputOf(vm().client, `awk '/^nameserver/ {print $2}' /etc/resolv.conf`),
          GUEST_NETWORK.gateway,
        );
      });

      it('reaches no private, link-local, metadata or shared range and no address of the host', async () => {
        await assertClosed(vm(), uplink.closed);
      });

      it('reaches nothing by IPv6', async () => {
        await assertClosed(vm(), uplink.closedIpv6);
      });

      it('does not reach another guest, which the host reaches', async () => {
        const other = vm() === one ? two : one;
        await assertClosed(vm(), [{ address: other.running.guest.address, port: GUEST_PORT }]);
      });

      it('reaches nothing at its gateway but the resolver', async () => {
        const ports = [22, 53, 80, 443, GUEST_PORT, 5_432, 4_800];
        const open = await openTo(
          vm(),
          ports.map((port) => ({ address: GUEST_NETWORK.gateway, port })),
        );
        assert.deepEqual(open, [`${GUEST_NETWORK.gateway}:53`]);
      });
    };

    describe('of a guest restored a moment ago', () => rules(() => one));

    describe('of a guest that changed its own addresses and routes, as root inside', () => {
      before(async () => {
        // Imitates a guest that addresses the host's networks directly.
        await outputOf(
          two.client,
          'sudo ip address add 10.66.0.77/24 dev eth0; sudo ip -6 address add fd00::7/64 dev eth0 nodad; ' +
            'sudo ip -6 route add default dev eth0; ' +
            'sudo ip route add 169.254.169.254 dev eth0; true',
        );
      });
      it('reaches no private, link-local, metadata or shared range and no address of the host', async () => {
        await assertClosed(two, uplink.closed);
      });
      it('reaches nothing by IPv6', async () => {
        await assertClosed(two, uplink.closedIpv6);
      });
    });

    describe('under an egress policy', () => {
      let limited: SubjectVm;
      const { name, address } = uplink.name;
      const resolved = `getent ahostsv4 ${name} | awk 'NR == 1 {print $1}'`;
      before(async () => {
        limited = await current().create({ ...spec, egress: { ...OPEN_EGRESS, mode: 'none' } });
      });
      after(async () => {
        await current().destroy(limited);
      });

      it('of none from the create, resolves nothing and reaches nothing', async () => {
        assert.equal(await outputOf(limited.client, resolved), '');
        assert.deepEqual(await openTo(limited, uplink.internet), []);
      });

      it('of one name, reaches its address alone, before and after a sleep', async () => {
        const policy = { ...OPEN_EGRESS, mode: 'allow' as const, names: [name] };
        await current().driver.setEgress(limited.saved.at(-1) ?? {}, policy);
        const own = uplink.internet.filter((target) => target.address === address);
        for (const round of ['awake', 'woken']) {
          assert.equal(await outputOf(limited.client, resolved), address, round);
          assert.deepEqual(await openTo(limited, uplink.internet), own.map(said).sort(), round);
          if (round === 'woken') break;
          await current().sleep(limited, spec);
          await current().wake(limited, { egress: policy });
        }
      });
    });

    describe('of a guest taken over by another driver instance', () => {
      before(async () => {
        const subject = current();
        await subject.replaceDriver();
        for (const vm of [one, two])
          assert.ok(await subject.driver.recover(vm.folder, vm.saved.at(-1) ?? {}, OPEN_EGRESS));
      });
      rules(() => one);
    });
  });
}

function said({ address, port }: Target): string {
  return `${address}:${port}`;
}
