# Makes pipes for the input of commands: prints the read descriptor of each, one a line, and keeps
# them open until stdin closes. Argument: the number of pipes.
use strict;
my @pipes;
for (1 .. $ARGV[0]) {
  pipe(my $read, my $write) or exit 1;
  push @pipes, $read, $write;
  print fileno($read), "\n";
}
close STDOUT;
<STDIN>;
