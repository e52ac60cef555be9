// List of an org with many sandboxes: time to its first rows in a browser without a cache, and
// frames while it scrolls through all of them.
import { sql } from 'kysely';
import type { Page } from 'playwright-core';
import { addressOf, copySandbox, type ConsoleSite } from '../../console/test/browser.ts';
import { until } from '../../os/test/until.ts';
import { inPage } from './in-page.ts';
import { figureOf, type Figure } from '../world/statistics.ts';

const OPENS = 10;
const FIRST_ROWS = 10;
const PIXELS_PER_SECOND = 3_000;
const SCROLL_MS = 20_000;
const DEADLINE_MS = 600_000;

interface ListFigures {
  rowsColdMs: Figure;
  opens: number;
  frameMs: Figure;
  frames: number;
  /** Elements of the page while all sandboxes are loaded. */
  nodes: number;
}

export async function measureList(site: ConsoleSite, count: number): Promise<ListFigures> {
  const { id } = await site.api.makeSandbox('stopped', { name: 'sandbox-00001' });
  await copySandbox(site, id, 'sandbox-', count - 1);
  await sql`analyze sandbox`.execute(site.api.db);
  const path = `/orgs/${site.api.orgId}/sandboxes`;
  const { page } = await site.open(path);
  await page.locator('tbody tr').first().waitFor();

  const cold: number[] = [];
  const devtools = await page.context().newCDPSession(page);
  for (let round = 0; round < OPENS; round += 1) {
    await devtools.send('Network.clearBrowserCache');
    await page.goto(addressOf(path), { waitUntil: 'commit' });
    const rows = "document.querySelectorAll('tbody tr').length";
    cold.push(await inPage<number>(page, `${rows} > ${FIRST_ROWS} && performance.now()`));
  }
  await loadAll(page, count);
  const frames = await scroll(page);
  const nodes = await page.evaluate<number>(`document.querySelectorAll('*').length`);
  return { rowsColdMs: figureOf(cold), opens: OPENS, frameMs: figureOf(frames), frames: frames.length, nodes };
}

/** Scrolls to the end until the page has all sandboxes. */
async function loadAll(page: Page, count: number): Promise<void> {
  let shown = '';
  await until(
    () => `all sandboxes are loaded: ${shown}`,
    async () => {
      await page.evaluate('window.scrollTo(0, document.documentElement.scrollHeight)');
      shown = await page.locator('h1 + span').innerText();
      return shown.startsWith(`${count} `) ? true : null;
    },
    DEADLINE_MS,
  );
  await page.evaluate('window.scrollTo(0, 0)');
}

/** Milliseconds of each frame while the page scrolls at a constant speed. */
async function scroll(page: Page): Promise<number[]> {
  return await page.evaluate<number[]>(`new Promise((resolve) => {
    const frames = [];
    let startedAt, last;
    const next = (now) => {
      startedAt ??= now;
      if (last !== undefined) frames.push(now - last);
      last = now;
      if (now - startedAt > ${SCROLL_MS}) return resolve(frames);
      window.scrollTo(0, (now - startedAt) / 1000 * ${PIXELS_PER_SECOND});
      requestAnimationFrame(next);
    };
    requestAnimationFrame(next);
  })`);
}
