// The HTTP of a host daemon over a lifecycle fixture.
import type { SpliceBounds } from '@berth/protocol/splice.ts';
import { pino } from 'pino';
import { hostCalls } from '../../src/server/calls.ts';
import type { HostTokens } from '../../src/server/host-tokens.ts';
import { HostServer } from '../../src/server/server.ts';
import type { LifecycleFixture } from '../vm/lifecycle/lifecycle-fixture.ts';

/** A server that does not listen yet. */
export function serverOf(
  { lifecycle }: LifecycleFixture,
  tokens: HostTokens,
  streamBounds: SpliceBounds = { idleMs: 1_000, longestMs: 1_000 },
): HostServer {
  return new HostServer({
    calls: hostCalls({
      lifecycle,
      pool: { state: () => ({ ready: 1, target: 2 }) },
      host: {
        hostId: 'hst_x',
        startId: 'run_x',
        driver: 'fake',
        accelerator: 'none',
        qemuVersion: null,
        templateId: null,
      },
    }),
    streamBounds,
    tokens,
    log: pino({ level: 'silent' }),
  });
}
