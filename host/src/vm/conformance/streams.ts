// Conformance: raw streams reach any port a program in the VM listens on, at any address of the
// guest, and nothing else.
import assert from 'node:assert/strict';
import { createHash, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import type { Duplex } from 'node:stream';
import { after, before, describe, it } from 'node:test';
import { openTerminal, terminalQueryOf, type TerminalAsked } from '@berth/protocol/calls/connections.ts';
import { GUEST_PORT } from '@berth/protocol/guest.ts';
import {
  bytesFrames,
  COMMAND_STREAM,
  controlFrame,
  FrameReader,
  TERMINAL_FRAME,
} from '@berth/protocol/terminal-frames.ts';
import { HostError } from '../host-error.ts';
import type { DriverCapabilities } from '../driver.ts';
import { GuestStreams, openGuestPort } from '../../guest/guest-streams.ts';
import { newRecord, OwnedVm } from '../owned/owned-vm.ts';
import { outputOf, type ConformanceOptions, type Subject, type SubjectVm } from './subject.ts';

const NEVER = new AbortController().signal;
const BYTES = 2_000_000;

/** Echoes its input after EOF, then the input's length. In Perl, which every Debian has. */
const ECHO = `
use IO::Socket::IP;
my $server = IO::Socket::IP->new(LocalHost => $ARGV[0], LocalPort => 0, Listen => 5) or die "listen: $@";
open(my $port, ">", "$ARGV[1].new") or die;
print $port $server->sockport;
close $port;
rename "$ARGV[1].new", $ARGV[1];
while (my $client = $server->accept) {
  my ($all, $some) = ("", "");
  $all .= $some while sysread($client, $some, 65536);
  print $client $all, length $all;
  close $client;
}
`;

export function streamsConform(
  current: () => Subject,
  { spec }: ConformanceOptions,
  capabilities: DriverCapabilities,
): void {
  describe('a stream to a port of a VM', () => {
    const streams = new GuestStreams({ perVm: 8, perHost: 8 });
    let vm: SubjectVm;
    let owned: OwnedVm;
    before(async () => {
      vm = await current().create(spec);
      owned = new OwnedVm(newRecord(vm.id, 1, spec));
      await outputOf(vm.client, `cat >/tmp/echo.pl <<'ECHO'\n${ECHO}ECHO`);
    });
    after(async () => {
      await current().destroy(vm);
    });

    const open = async (port: number): Promise<Duplex> =>
      streams.open(owned, { org: 'org_a' }, NEVER, (opening) => openGuestPort(vm.client, port, opening));

    const terminal = (asked: TerminalAsked): Promise<Duplex> =>
      streams.open(owned, { org: 'org_a' }, NEVER, (signal) =>
        vm.client.open(openTerminal, { query: terminalQueryOf(asked) }, { signal }),
      );

    async function listen(address: string): Promise<number> {
      const file = `/tmp/port-of-${address.replaceAll(':', '_')}`;
      const script =
        `setsid perl /tmp/echo.pl ${address} ${file} >/tmp/echo.log 2>&1 & ` +
        `until [ -s ${file} ]; do sleep 0.05; done; cat ${file}`;
      return Number(await outputOf(vm.client, script));
    }

    for (const [address, what] of [
      ['0.0.0.0', 'on every address'],
      ['127.0.0.1', 'on the loopback alone'],
      ['::1', "on IPv6's loopback alone"],
    ] as const) {
      it(`reaches a program that listens ${what}, and carries bytes both ways to their end`, async () => {
        const stream = await open(await listen(address));
        const sent = randomBytes(BYTES);
        stream.end(sent);
        const back = Buffer.concat((await stream.toArray()) as Buffer[]);
        const sum = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');
        assert.equal(sum(back.subarray(0, BYTES)), sum(sent));
        assert.equal(back.subarray(BYTES).toString(), String(BYTES));
      });
    }

    it('is refused on a port without a listener', async () => {
      await assert.rejects(open(9), { code: 'port_refused' });
    });

    it('never leads to the guest daemon', async () => {
      for (const port of [GUEST_PORT, vm.running.guest.port])
        await assert.rejects(open(port), { code: 'port_forbidden' });
    });

    if (capabilities.network) {
      it('never leads to a port of the host', async () => {
        const server = createServer(() => assert.fail('nobody may come here'));
        server.listen(0, '0.0.0.0');
        await once(server, 'listening');
        try {
          await assert.rejects(open((server.address() as AddressInfo).port), { code: 'port_refused' });
        } finally {
          server.close();
        }
      });
    }

    it('leads to a terminal: the tenant’s shell with its size; the exit code comes last', async () => {
      const stream = await terminal({ tty: true, cols: 101, rows: 33, command: null });
      let shown = '';
      const controls: unknown[] = [];
      const reader = new FrameReader((kind, content) => {
        if (kind === TERMINAL_FRAME.bytes) shown += content.toString('utf8');
        else controls.push(JSON.parse(content.toString('utf8')));
      });
      stream.on('data', (chunk: Buffer) => reader.push(chunk));
      // Printed by a foreground program: a Ctrl-C between two shell commands would reach the shell.
      // A shell that is at its prompt can take a change of the size for the end of a command.
      const resized = 'until stty size | grep -qx "24 80"; do sleep 0.1; done; echo resized';
      stream.write(bytesFrames(Buffer.from(`sh -c 'stty size; id -un; pwd; ${resized}; exec sleep 1000'\n`)));
      const untilShown = async (pattern: RegExp): Promise<void> => {
        while (!pattern.test(shown)) await once(stream, 'data', { signal: AbortSignal.timeout(60_000) });
      };
      await untilShown(/33 101\r\nberth\r\n\/code\r\n/);
      stream.write(controlFrame({ resize: { cols: 80, rows: 24 } }));
      await untilShown(/^resized\r\n/m);
      stream.write(bytesFrames(Buffer.from('\x03')));
      stream.write(bytesFrames(Buffer.from('exit $((100 + $?))\n')));
      await once(stream, 'end');
      stream.end();
      assert.deepEqual(controls, [{ exit: 230 }], shown);
    });

    it('leads to a command: full input, separate and complete outputs; the exit comes last', async () => {
      const command = 'id -un; pwd; sha256sum; head -c 300000 /dev/zero; echo of the other >&2; exit 9';
      const stream = await terminal({ tty: false, command });
      const outputs: Record<number, Buffer[]> = { [COMMAND_STREAM.stdout]: [], [COMMAND_STREAM.stderr]: [] };
      const controls: unknown[] = [];
      const reader = new FrameReader((kind, content) => {
        if (kind === TERMINAL_FRAME.bytes) outputs[content[0] ?? 0]?.push(content.subarray(1));
        else controls.push(JSON.parse(content.toString('utf8')));
      });
      stream.on('data', (chunk: Buffer) => reader.push(chunk));
      const sent = randomBytes(BYTES);
      stream.write(bytesFrames(sent));
      stream.write(controlFrame({ end: true }));
      await once(stream, 'end');
      stream.end();
      const [stdout = '', stderr = ''] = [COMMAND_STREAM.stdout, COMMAND_STREAM.stderr].map((one) =>
        Buffer.concat(outputs[one] ?? []).toString(),
      );
      const sum = createHash('sha256').update(sent).digest('hex');
      assert.equal(stdout, `berth\n/code\n${sum}  -\n${'\0'.repeat(300_000)}`);
      assert.deepEqual([stderr, controls], ['of the other\n', [{ exit: 9 }]]);
    });

    it('ends its command and the whole session when it is closed', async () => {
      // Identified by a unique sleep duration.
      const command = `trap '' HUP; sleep 71717 & exec sleep 71717`;
      const running = async (): Promise<string> => outputOf(vm.client, 'pgrep -cx -f "sleep 71717" || true');
      for (const asked of [
        { tty: false as const, command },
        { tty: true as const, cols: 80, rows: 24, command },
      ]) {
        const stream = await terminal(asked);
        stream.resume();
        await untilSame(running, '2');
        stream.destroy();
        await untilSame(running, '0');
      }
    });

    it('closes when its VM is released', async () => {
      const stream = await open(await listen('0.0.0.0'));
      stream.resume();
      owned.closeStreams(new HostError('vm_not_running', 'it is over'));
      await once(stream, 'close');
      assert.equal(owned.streams.size, 0);
    });
  });
}

/** Polls until the response equals `wanted`. */
async function untilSame(ask: () => Promise<string>, wanted: string): Promise<void> {
  const deadline = performance.now() + 60_000;
  for (let answer = ''; answer !== wanted; answer = (await ask()).trim())
    assert.ok(performance.now() < deadline, `the answer is ${answer} and not ${wanted}`);
}
