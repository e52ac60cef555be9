// The console in a real browser, on the real API with rows in its database.
import assert from 'node:assert/strict';
import { sql } from 'kysely';
import type { Browser, Page } from 'playwright-core';
import type { Role } from '@berth/contract/route/permissions.ts';
import { openBrowser, Person, type Size } from '../../api/test/pages/browser.ts';
import { PASSWORD, startSite, type TestSite } from '../../api/test/pages/site.ts';
import type { TestApiOptions } from '../../api/test/world/api.ts';
import { SETTINGS } from '../../api/test/world/settings.ts';
import { insertMembership } from '../../api/src/store/people/identity.ts';
import { builtConsole } from './built.ts';
import { deadlineOf } from '../../os/test/until.ts';

const { publicUrl } = SETTINGS;
/** The narrowest supported screen. */
export const NARROWEST = { width: 320, height: 640 };
export const PICTURES = process.env['BERTH_TEST_PICTURES'] ?? null;
/** Sizes at which each page is checked; pictures also show a telephone. */
export const SIZES: readonly Size[] = [
  NARROWEST,
  ...(PICTURES === null ? [] : [{ width: 390, height: 844 }]),
  // The narrowest screen with the navigation at its side.
  { width: 768, height: 1024 },
  { width: 1280, height: 800 },
];

/** A name that a tenant may choose, and its text on a page. */
export const HOSTILE = '<img src=x onerror=alert(1)>\u202Egnp.exe';
export const HARMLESS = '<img src=x onerror=alert(1)>⟨U+202E⟩gnp.exe';

export interface ConsoleSite extends TestSite {
  browser: Browser;
  /** Signs a new member of the first org in, and opens a page of the console. */
  open(path: string, role?: Role | null): Promise<ConsolePerson>;
}

/**
 * Adds copies of a sandbox in the database: `<name>00002` and so on, each a second older than the
 * one before.
 */
export async function copySandbox(
  { api }: ConsoleSite,
  sandboxId: string,
  name: string,
  copies: number,
): Promise<void> {
  await sql`
    insert into sandbox select (jsonb_populate_record(one, jsonb_build_object(
      'id', 'sbx_' || translate(right(md5(one.id), 18) || lpad(n::text, 6, '0'), '0189', 'ghij'),
      'name', ${name}::text || lpad(n::text, 5, '0'),
      'created_at', one.created_at - n * interval '1 second'))).*
    from sandbox one, generate_series(2, ${copies + 1}::integer) n where one.id = ${sandboxId}`.execute(api.db);
}

interface ConsolePerson {
  person: Person;
  page: Page;
  userId: string;
  email: string;
}

export const addressOf = (path: string): string => `${publicUrl}/console${path}`;

/** @param flags more flags of the browser @param options of the API; by default not durable */
export async function startConsole(
  flags: readonly string[] = [],
  { settings, ...options }: Partial<TestApiOptions> = {},
): Promise<ConsoleSite> {
  const site = await startSite({ ...options, settings: { ...settings, consoleFolder: builtConsole() } });
  const browser = await openBrowser(publicUrl, site.url, [], flags);
  return {
    ...site,
    browser,
    open: async (path, role = 'owner') => {
      const { userId, email } = await site.account({ name: 'Ada Lovelace' });
      if (role !== null) await insertMembership(site.api.db, { orgId: site.api.orgId, userId, role });
      const person = await Person.make(browser, PICTURES, SIZES);
      const { page } = person;
      page.setDefaultTimeout(deadlineOf(60_000));
      await person.open(addressOf(path));
      await page.waitForURL(/\/sign-in\?/);
      await page.getByLabel('Email address').fill(email);
      await page.getByLabel('Password').fill(PASSWORD);
      await page.getByRole('button', { name: 'Sign in', exact: true }).click();
      await page.waitForURL(/\/console/);
      return { person, page, userId, email };
    },
    close: async () => {
      await browser.close();
      await site.close();
    },
  };
}

/** Looks at a page that was scrolled: on narrow screens its header covers what is below it. */
export async function lookFromTop(person: Person, heading: string, picture: string): Promise<void> {
  await person.page.evaluate('document.activeElement.blur(); scrollTo({ top: 0, behavior: "instant" })');
  await person.look(heading, picture);
}

/** The button is visible and focusable, and does nothing for the reason. */
export async function assertDisabled(page: Page, name: string, reason: RegExp): Promise<void> {
  const button = page.getByRole('button', { name, exact: true });
  assert.equal(await button.getAttribute('aria-disabled'), 'true', name);
  await button.focus();
  const tooltip = page.locator(`[id="${(await button.getAttribute('aria-describedby')) ?? ''}"]`);
  await tooltip.waitFor({ state: 'visible' });
  assert.match(await tooltip.innerText(), reason, name);
}

export async function assertEnabled(page: Page, ...names: string[]): Promise<void> {
  for (const name of names) {
    const button = page.getByRole('button', { name, exact: true });
    assert.equal(await button.getAttribute('aria-disabled'), null, name);
  }
}
