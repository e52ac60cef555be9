// Loaded into the process of a test file: kills it at its deadline, and names what keeps it alive.
// An open handle keeps a file alive after its last test, and a file may handle SIGTERM.
const deadlineMs = Number(process.env['BERTH_TEST_FILE_MS']);

setTimeout(() => {
  const active = Map.groupBy(process.getActiveResourcesInfo(), (name) => name);
  const names = [...active].map(([name, { length }]) => `${name} (${length})`).join(', ');
  console.error(`the file did not end within ${deadlineMs / 1_000} s; active: ${names}`);
  process.kill(process.pid, 'SIGKILL');
}, deadlineMs).unref();
