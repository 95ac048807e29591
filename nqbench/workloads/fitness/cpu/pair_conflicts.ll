; Algorithm 1 as C++ compilers emit it before optimizing: every variable is in memory.
declare i32 @llvm.abs.i32(i32, i1)

define i64 @pair_conflicts(ptr %given_board, i32 %given_n) {
entry:
  %board = alloca ptr
  %n = alloca i32
  %count = alloca i64
  %i = alloca i32
  %j = alloca i32
  store ptr %given_board, ptr %board
  store i32 %given_n, ptr %n
  store i64 0, ptr %count
  store i32 0, ptr %i
  br label %outer

outer:
  %i0 = load i32, ptr %i
  %n0 = load i32, ptr %n
  %more_i = icmp slt i32 %i0, %n0
  br i1 %more_i, label %start, label %done

start:
  %i1 = load i32, ptr %i
  %j0 = add nsw i32 %i1, 1
  store i32 %j0, ptr %j
  br label %inner

inner:
  %j1 = load i32, ptr %j
  %n1 = load i32, ptr %n
  %more_j = icmp slt i32 %j1, %n1
  br i1 %more_j, label %test, label %next_i

test:
  %board0 = load ptr, ptr %board
  %i2 = load i32, ptr %i
  %i2_wide = sext i32 %i2 to i64
  %at_i = getelementptr inbounds i32, ptr %board0, i64 %i2_wide
  %queen_i = load i32, ptr %at_i
  %board1 = load ptr, ptr %board
  %j2 = load i32, ptr %j
  %j2_wide = sext i32 %j2 to i64
  %at_j = getelementptr inbounds i32, ptr %board1, i64 %j2_wide
  %queen_j = load i32, ptr %at_j
  %apart = sub nsw i32 %queen_i, %queen_j
  %rows = call i32 @llvm.abs.i32(i32 %apart, i1 true)
  %j3 = load i32, ptr %j
  %i3 = load i32, ptr %i
  %columns = sub nsw i32 %j3, %i3
  %conflict = icmp eq i32 %rows, %columns
  br i1 %conflict, label %found, label %next_j

found:
  %count0 = load i64, ptr %count
  %count1 = add nsw i64 %count0, 1
  store i64 %count1, ptr %count
  br label %next_j

next_j:
  %j4 = load i32, ptr %j
  %j5 = add nsw i32 %j4, 1
  store i32 %j5, ptr %j
  br label %inner

next_i:
  %i4 = load i32, ptr %i
  %i5 = add nsw i32 %i4, 1
  store i32 %i5, ptr %i
  br label %outer

done:
  %result = load i64, ptr %count
  ret i64 %result
}
