// Sizes of the costly tests. `./berth test --whole` runs them whole; other runs take samples where
// cheaper tests cover each case.
export const LONG_RUN = process.env.BERTH_TEST_LONG === '1';

const EVERY = 8;

/** All items in a long run, otherwise every eighth, from the first on. */
export function sampleOf<Item>(items: readonly Item[], every = EVERY): Item[] {
  return items.filter((_item, index) => LONG_RUN || index % every === 0);
}
