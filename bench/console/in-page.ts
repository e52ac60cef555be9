import type { Page } from 'playwright-core';

/** Value of the expression in the page, at the first frame at which it is true. */
export async function inPage<T>(page: Page, expression: string): Promise<T> {
  return await page.evaluate<T>(`new Promise((resolve) => {
    const look = () => {
      const value = ${expression};
      if (value) resolve(value);
      else requestAnimationFrame(look);
    };
    look();
  })`);
}
