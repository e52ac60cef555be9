// Times of calls about an agent session, each beside a call of comparable work in the same VM, in
// turns; and the memory of the bridge. The scripted agent needs no model.
import type { BenchWorld } from '../world/installation.ts';
import { timed } from '../world/installation.ts';
import { bridgePattern, guestMemoryMib } from './guest-memory.ts';
import { figureOf, type Figure } from '../world/statistics.ts';

const WARM_UP_ROUNDS = 3;

interface CallFigures {
  createMs: Figure;
  messageMs: Figure;
  execMs: Figure;
  pollMs: Figure;
  metricsMs: Figure;
  /** Proportional memory of the bridge process, without its agent. */
  bridgeMib: number;
}

export async function measureCalls({ client, progress }: BenchWorld, rounds: number): Promise<CallFigures> {
  return await progress.step(`${rounds} rounds of calls`, async () => {
    const sandboxId = await client.createAwake();
    const create = (): Promise<unknown> => client.call('POST', `/v1/sandboxes/${sandboxId}/agent-sessions`);
    const createMs: number[] = [];
    let id = '';
    for (let made = 0; made < 4; made += 1)
      createMs.push(await timed(async () => ({ id } = (await create()) as { id: string })));

    const path = `/v1/agent-sessions/${id}`;
    const ms = { message: [] as number[], exec: [] as number[], poll: [] as number[], metrics: [] as number[] };
    const work: { readonly [name in keyof typeof ms]: () => Promise<unknown> } = {
      message: () => client.call('POST', `${path}/messages`, { text: 'say hello' }),
      exec: () => client.call('POST', `/v1/sandboxes/${sandboxId}/exec`, { command: 'true' }),
      poll: () => client.call('GET', path),
      metrics: () => client.call('GET', `/v1/sandboxes/${sandboxId}/metrics/live`),
    };
    for (let round = -WARM_UP_ROUNDS; round < rounds; round += 1) {
      for (const name of ['message', 'exec', 'poll', 'metrics'] as const) {
        const took = await timed(work[name]);
        if (round >= 0) ms[name].push(took);
        if (name === 'message') await ended();
      }
    }
    const bridgeMib = await guestMemoryMib(client, sandboxId, bridgePattern(id));
    await client.destroy(sandboxId);
    return {
      createMs: figureOf(createMs),
      messageMs: figureOf(ms.message),
      execMs: figureOf(ms.exec),
      pollMs: figureOf(ms.poll),
      metricsMs: figureOf(ms.metrics),
      bridgeMib,
    };

    async function ended(): Promise<void> {
      for (;;) {
        const { turnState } = (await client.call('GET', path)) as { turnState: string };
        if (turnState === 'completed') return;
        if (turnState !== 'sending' && turnState !== 'running') throw new Error(`the turn is ${turnState}`);
      }
    }
  });
}
