// A real guest daemon, with its helper for file calls, behind the scripted host of a test. Paths
// are those of this machine: tests use absolute ones below `codeFolder`.
import { request } from 'node:http';
import type { Duplex } from 'node:stream';
import type { TestContext } from 'node:test';
import { GUEST_WIRE } from '@berth/protocol/calls/wire.ts';
import { guestError } from '@berth/protocol/guest.ts';
import type { HostErrorCode } from '@berth/protocol/host.ts';
import { startDaemon, type TestDaemon } from '../../../../guest/test/daemon.ts';
import type { ExecFront } from './exec-front.ts';
import { ExecRefusal } from './exec-refusal.ts';

/** Serves files, streams and commands of every VM from one new daemon. */
export async function serveRealGuest(t: Pick<TestContext, 'after'>, front: ExecFront): Promise<TestDaemon> {
  const daemon = await startDaemon(t as TestContext);
  front.exec = async ({ command }) => await daemon.exec(command);
  front.files = async ({ method, target, body }) => {
    const { status, bytes, text } = await daemon.open(method, `/${target}`, body).answer;
    if (status !== 200) throw refusalIn(text);
    return method === 'GET' && !target.startsWith('file/stat') ? bytes : (JSON.parse(text) as object);
  };
  front.stream = async (_vmId, target) => {
    const stream = await open(daemon, target);
    return (caller) => join(caller, stream);
  };
  return daemon;
}

function open({ port }: TestDaemon, target: string): Promise<Duplex> {
  const path = `/${target}`;
  const call = GUEST_WIRE.find(({ upgrade, path: known }) => upgrade !== undefined && known === path.split('?')[0]);
  if (call?.upgrade === undefined) throw new ExecRefusal('vm_not_running', `the guest has no stream ${target}`);
  const headers = { connection: 'Upgrade', upgrade: call.upgrade };
  const sent = request({ host: '127.0.0.1', port, path, method: call.method, headers });
  return new Promise((resolve, reject) => {
    sent.once('error', ({ message }) => reject(new ExecRefusal('guest_unreachable', message)));
    sent.once('upgrade', (_response, stream, head) => {
      if (head.length > 0) stream.unshift(head);
      resolve(stream);
    });
    sent.once('response', (response) => {
      response.once('data', (text: Buffer) => reject(refusalIn(text.toString())));
    });
    sent.end();
  });
}

function refusalIn(text: string): ExecRefusal {
  const { code, errno } = guestError.parse(JSON.parse(text)).error;
  return new ExecRefusal(code as HostErrorCode, 'refused by the guest', errno);
}

/** The end or break of one side reaches the other. */
function join(one: Duplex, other: Duplex): void {
  for (const [from, to] of [
    [one, other],
    [other, one],
  ] as const) {
    from.on('error', () => undefined);
    from.pipe(to);
    from.once('close', () => {
      if (!from.readableEnded) to.destroy();
    });
  }
}
