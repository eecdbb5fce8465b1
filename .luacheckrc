std = 'lua51'
-- What Redis gives a script.
read_globals = { 'redis', 'struct', 'KEYS', 'ARGV' }
max_line_length = 132
