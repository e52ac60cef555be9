// Sets `data-theme` before the first paint, from the person's choice or else the system's, and
// follows the system while there is no choice. Runs as a classic script.
{
  const dark = matchMedia('(prefers-color-scheme: dark)');
  const apply = (): void => {
    let choice: string | null = null;
    try {
      choice = localStorage.getItem('berth.theme');
    } catch {
      // The browser blocks storage: nothing can have been chosen.
    }
    document.documentElement.dataset['theme'] =
      choice === 'light' || choice === 'dark' ? choice : dark.matches ? 'dark' : 'light';
  };
  apply();
  dark.addEventListener('change', apply);
  // Also from other tabs. The page's own choice is announced by `setTheme`.
  addEventListener('storage', apply);
}

export {};
