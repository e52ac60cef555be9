// Links to previews: created with valid and invalid bodies, listed, revoked, and opened meanwhile.
import type { Random } from '../../world/random.ts';
import type { FuzzKind, FuzzRequest } from '../core/kind.ts';
import { oddText } from '../core/odd-values.ts';
import { endpointOf } from './endpoints.ts';
import type { Expected } from '../core/preview-request.ts';

export const previewLinks: FuzzKind = {
  name: 'preview-links',
  weight: 20,
  run: async ({ random, send, sendPreview, world }) => {
    const id = random.chance(0.9) ? random.pick(world.awake as [string]) : random.pick(world.away as [string]);
    const base = `/v1/sandboxes/${id}/previews`;
    if (random.chance(0.2))
      await send({ method: random.pick(['GET', 'GET', 'HEAD', 'PUT'] as const), target: `${base}${oddQuery(random)}` });
    if (random.chance(0.1)) await send({ method: 'DELETE', target: `${base}/${random.pick(ODD_IDS)}` });
    const made = await send({ method: 'POST', target: base, ...mintBody(random) });
    const preview = (made?.body as { preview?: { id: string | null; url: string; audience: string } } | undefined)
      ?.preview;
    if (made?.status !== 201 || preview === undefined) return;
    const endpoint = endpointOf(preview.url);
    const open = async (codes: Expected['codes'], app: boolean): Promise<void> => {
      const bytes = Buffer.from(
        `GET /?token=${endpoint.token} HTTP/1.1\r\nhost: ${endpoint.host}\r\nconnection: close\r\n\r\n`,
      );
      await sendPreview({
        what: 'new link',
        pieces: [bytes],
        expected: [{ method: 'GET', codes, ...(app ? { app: { target: '/' } } : {}) }],
      });
    };
    const { previews } = world;
    const here = endpoint.host === previews.app.host;
    // Only the app's port, of those requested here, has an HTTP server; the other sandbox has none.
    const opened = ['port_refused', 'preview_link_expired', 'preview_answer_broken', 'preview_sandbox_asleep'] as const;
    if (preview.audience === 'team') await open(['preview_link_required', 'preview_link_expired'], false);
    else await open(opened, here);
    if (preview.id === null || random.chance(0.1)) return;
    await send({ method: 'DELETE', target: `${base}/${preview.id}` });
    if (random.chance(0.3)) await send({ method: 'DELETE', target: `${base}/${preview.id}` });
    // May still open for up to two seconds.
    await open([...opened, 'preview_link_revoked'], here);
  },
};

const ODD_IDS = ['prv_', `prv_${'a'.repeat(24)}`, '%00', '..%2f', 'x', '%F0%9F%A6%AD', 'a'.repeat(2_000)] as const;

function oddQuery(random: Random): string {
  return random.pick([
    '',
    '?limit=1',
    '?limit=0',
    '?limit=x',
    '?limit=1001',
    '?cursor=x',
    '?cursor=',
    '?limit=1&limit=2',
    '?x=1',
    '?limit=1000&cursor=%00',
  ] as const);
}

function mintBody(random: Random): Pick<FuzzRequest, 'body' | 'headers'> {
  if (random.chance(0.05)) {
    return {
      body: random.pick(['', '{', '[]', 'null', '"x"', '{"port":1e400}', '{"__proto__":{"port":1},"port":9}'] as const),
    };
  }
  const wrong = random.chance(0.35);
  const port: unknown = wrong
    ? random.pick([0, -1, 65_536, 1.5, '9', null, 987, 1e21, true, [9], 65_535] as [unknown, ...unknown[]])
    : random.pick([9, 9, 11, 65_535] as const);
  const odd = <Value>(share: number, fields: Value): Value | object => (random.chance(share) ? fields : {});
  return {
    body: JSON.stringify({
      ...(random.chance(0.98) ? { port } : {}),
      ...odd(0.9, {
        audience: random.chance(wrong ? 0.8 : 1)
          ? random.pick(['public', 'public', 'team'] as const)
          : random.pick<unknown>(['', 'Public', 'all', null, 1]),
      }),
      ...odd(0.5, {
        expiresInSeconds: wrong
          ? random.pick([0, -1, 2_592_001, 1.5, '60', null] as [unknown, ...unknown[]])
          : random.pick([1, 60, 2_592_000] as const),
      }),
      ...odd(0.2, { label: oddText(random, random.pick([0, 1, 100, 101, 5_000] as const)) }),
      ...odd(0.2, { endUserId: oddText(random, random.pick([0, 1, 50, 500, 5_000] as const)) }),
      ...odd(wrong ? 0.2 : 0, { more: 1 }),
    }),
  };
}
