// Overhead of a preview, compared with the same app reached directly at its guest's address, which
// only the host can do: requests and bytes per second, and latency of a WebSocket frame. Both paths
// are measured in turn, in the same run, so that other load on the host affects both.
import { setTimeout as delay } from 'node:timers/promises';
import { addressOf } from '../world/guest.ts';
import type { BenchWorld } from '../world/installation.ts';
import { figureOf, measured, type Measured } from '../world/statistics.ts';
import { headOf, timeFrames, timeRequests, type LoadTarget } from '../world/http-load.ts';
import { BIG_BYTES, PREVIEW_APP, PREVIEW_APP_PORT } from './preview-app.ts';

/** Enough that neither path waits for its caller: this compares throughput. */
const CONNECTIONS = 64;
const REQUESTS = 8_000;
/** As many as one page opens: this compares latency too. */
const FEW_CONNECTIONS = 8;
const FEW_REQUESTS = 4_000;
const FRAMES = 200;
const WARM_UPS = 6;
const APP_DEADLINE_MS = 60_000;
const APP_POLL_MS = 100;

export async function measurePreviews(world: BenchWorld, rounds: number): Promise<Measured[]> {
  const { client, progress } = world;
  return await progress.step('previews', async (report) => {
    const id = await client.createAwake();
    const { straight, preview } = await startPreviewApp(world, id);
    const [requests, few, bytes] = [new Compared(), new Compared(), new Compared()];
    const added: number[] = [];
    for (let round = -WARM_UPS; round < rounds; round += 1) {
      report(`round ${Math.max(0, round + 1)} of ${rounds}`);
      // Swaps the order each round: the first path bears after-effects of the previous round.
      const ways = round % 2 === 0 ? ([straight, preview] as const) : ([preview, straight] as const);
      const rates = new Map<
        LoadTarget,
        { perSecond: number; fewPerSecond: number; mibPerSecond: number; frameMs: number }
      >();
      for (const way of ways) {
        const perSecond = REQUESTS / (await timeRequests(way, '/small', REQUESTS, CONNECTIONS));
        const fewPerSecond = FEW_REQUESTS / (await timeRequests(way, '/small', FEW_REQUESTS, FEW_CONNECTIONS));
        const mibPerSecond = BIG_BYTES / 1_048_576 / (await timeRequests(way, '/big', 1, 1));
        rates.set(way, {
          perSecond,
          fewPerSecond,
          mibPerSecond,
          frameMs: figureOf(await timeFrames(way, '/socket', FRAMES)).median,
        });
      }
      const [one, other] = [rates.get(straight), rates.get(preview)];
      if (round < 0 || one === undefined || other === undefined) continue;
      requests.add(one.perSecond, other.perSecond);
      few.add(one.fewPerSecond, other.fewPerSecond);
      bytes.add(one.mibPerSecond, other.mibPerSecond);
      added.push(other.frameMs - one.frameMs);
    }
    await client.destroy(id);
    return [
      measured(
        'straightRequestsPerSecond',
        `requests straight to the guest, over ${CONNECTIONS} connections`,
        '/s',
        requests.straight,
      ),
      measured('previewRequestsPerSecond', 'requests through a preview', '/s', requests.preview),
      measured('previewRequestsRatio', 'of that rate, through a preview', '', requests.ratio, 3),
      measured(
        'straightRequestsPerSecondOver8',
        `the same over ${FEW_CONNECTIONS} connections, straight`,
        '/s',
        few.straight,
      ),
      measured('previewRequestsPerSecondOver8', 'and through a preview', '/s', few.preview),
      measured('previewRequestsRatioOver8', 'of that rate, through a preview', '', few.ratio, 3),
      measured('straightMibPerSecond', 'bytes straight from the guest', 'MiB/s', bytes.straight),
      measured('previewMibPerSecond', 'bytes through a preview', 'MiB/s', bytes.preview),
      measured('previewThroughputRatio', 'of that throughput, through a preview', '', bytes.ratio, 3),
      measured('webSocketAddedMs', 'added to a WebSocket round trip', 'ms', added, 3),
    ];
  });
}

/** Starts the app in a sandbox. Resolves when it responds, with both ways to it. */
export async function startPreviewApp(
  world: BenchWorld,
  id: string,
): Promise<Record<'straight' | 'preview', LoadTarget>> {
  const { client, url } = world;
  await client.writeFile(id, 'bench/app.py', Buffer.from(PREVIEW_APP));
  await client.exec(id, 'setsid python3 bench/app.py </dev/null >bench/app.log 2>&1 & echo started');
  const straight: LoadTarget = {
    address: await addressOf(world, id),
    port: PREVIEW_APP_PORT,
    headers: 'host: guest\r\n',
  };
  await untilItAnswers(straight);
  return { straight, preview: await previewTarget(url, await client.createPreview(id, PREVIEW_APP_PORT)) };
}

/** A rate of both paths, and the preview's share of the direct rate, per round. */
class Compared {
  readonly straight: number[] = [];
  readonly preview: number[] = [];
  readonly ratio: number[] = [];

  add(straight: number, preview: number): void {
    this.straight.push(straight);
    this.preview.push(preview);
    this.ratio.push(preview / straight);
  }
}

/** The preview as a browser uses it after the first visit: by its host and the link's cookie. */
async function previewTarget(apiUrl: string, link: string): Promise<LoadTarget> {
  const { hostname, port } = new URL(apiUrl);
  const { host, searchParams } = new URL(link);
  const target = { address: hostname, port: Number(port), headers: `host: ${host}\r\n` };
  const head = await headOf(target, `/small?token=${searchParams.get('token') ?? ''}`);
  const cookie = /\r\nset-cookie: ([^;\r]+)/i.exec(head)?.[1];
  if (cookie === undefined) throw new Error(`the link was answered: ${head.slice(0, 300)}`);
  return { ...target, headers: `${target.headers}cookie: ${cookie}\r\n` };
}

async function untilItAnswers(target: LoadTarget): Promise<void> {
  const deadline = performance.now() + APP_DEADLINE_MS;
  for (;;) {
    try {
      await headOf(target, '/small');
      return;
    } catch (error) {
      if (performance.now() > deadline) throw new Error('the app in the guest does not answer', { cause: error });
      await delay(APP_POLL_MS);
    }
  }
}
