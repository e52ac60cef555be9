// Perl programs are imported as text: bundle.ts sets the loader of .pl. Only main.ts imports them,
// so that every other module also runs without the bundler.
declare module '*.pl' {
  const text: string;
  export default text;
}
