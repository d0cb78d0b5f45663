use super::*;

#[test]
fn secrets_do_not_stay() {
    let cases = [
        ("\\connect s3://ann:pa:ss@host/bucket", "\\connect s3://ann:***@host/bucket"),
        ("set 's3.secret-key' = 'abc';", "set 's3.secret-key' = '***';"),
        ("set s3.access-key = 'abc'", "set s3.access-key = '***'"),
        ("select f(password => 'x', 'keep')", "select f(password => '***', 'keep')"),
        ("\\set my_token abc def", "\\set my_token ***"),
        ("\\param db_password x y", "\\param db_password ***"),
        ("set 'fs.oss.accessKeyId' = 'abc';", "set 'fs.oss.accessKeyId' = '***';"),
        ("set azure.account.key = 'abc'", "set azure.account.key = '***'"),
        ("select 'https://h/x?a=1&token=abc&b=2' as u", "select 'https://h/x?a=1&token=***&b=2' as u"),
        ("\\connect s3://b/w?X-Amz-Signature=ffee", "\\connect s3://b/w?X-Amz-Signature=***"),
        ("set s3.secret_key = \"abc123\";", "set s3.secret_key = ***;"),
        ("set s3.secret = bareval; select 1", "set s3.secret = ***; select 1"),
        ("set s3.secret = bare-val.x/y+z", "set s3.secret = ***"),
        ("set 's3.secret' to 'toval';", "set 's3.secret' to '***';"),
        ("SET s3.secret TO toval", "SET s3.secret TO ***"),
        ("set s3.secret = 'not closed", "set s3.secret = '***'"),
        (".set my_token tok123", ".set my_token ***"),
        ("-- mine\n  .param api_key k9", "-- mine\n  .param api_key ***"),
        ("select 1; \\set password hunter2", "select 1; \\set password ***"),
        ("select 1; \\param token q123\nselect 'it''s'", "select 1; \\param token ***\nselect 'it''s'"),
        ("\\echo it's\nset s3.secret = 'x';", "\\echo it's\nset s3.secret = '***';"),
        ("set s3.secret \\timing\n = 'x';", "set s3.secret \\timing\n = '***';"),
        ("\\set password=hunter2", "\\set password=***"),
        ("\\param token=abc def", "\\param token=***"),
        ("\\o |curl --token abc -H x", "\\o |curl --token *** -H x"),
        ("\\once |mysql --password=abc", "\\once |mysql --password=***"),
        (
            "\\assert select count(*) from t where password = 'x' = 3",
            "\\assert select count(*) from t where password = '***' = 3",
        ),
        ("\\connect s3://ann:pa/ss@host/b", "\\connect s3://ann:***@host/b"),
        ("\\connect s3://ann:p@ss;1@host/b", "\\connect s3://ann:***@host/b"),
        ("select f(password => bare, keep)", "select f(password => ***, keep)"),
        (
            "copy t to 'x' options ('aws.secret' 'abc', 'format.a' 'b')",
            "copy t to 'x' options ('aws.secret' '***', 'format.a' 'b')",
        ),
        (
            "select * from t /*+ options('fs.secret.key'='x', 'scan.snapshot-id'='3') */",
            "select * from t /*+ options('fs.secret.key'='***', 'scan.snapshot-id'='3') */",
        ),
        ("-- set s3.secret = 'x'\nselect 1", "-- set s3.secret = '***'\nselect 1"),
        ("select * from t where token = :tok", "select * from t where token = :tok"),
        ("set s3.secret 'x'", "set s3.secret '***'"),
        ("select * from a join b on a.token = b.token", "select * from a join b on a.token = b.token"),
        ("select token, 'x' from t", "select token, 'x' from t"),
        ("select t\n.set from t", "select t\n.set from t"),
        ("\\set name it's a token", "\\set name it's a token"),
        ("\\counts tokens where id = 3", "\\counts tokens where id = 3"),
        ("select * from t where order_key = 'K1'", "select * from t where order_key = '***'"),
        ("select * from t where a & b = 3", "select * from t where a & b = 3"),
        ("select * from t where name = 'ann' and n = 3", "select * from t where name = 'ann' and n = 3"),
        ("select 'https://example.com/a:b@c'", "select 'https://example.com/a:b@c'"),
    ];
    for (text, expected) in cases {
        assert_eq!(redacted(text), expected);
    }
}

/// Whatever is typed with secrets in it, in every place they have: none is left, and what is left can be told.
#[test]
fn no_kind_of_secret_stays() {
    let cases = [
        ("\\set sk_key S1", "\\set sk_key ***"),
        ("\\set 'db password' S1 S2", "\\set 'db password' ***"),
        ("\\set pass S1", "\\set pass ***"),
        ("select 'token=S1'", "select 'token=***'"),
        ("select 'a token=S1; b'", "select 'a token=***; b'"),
        ("select 'password=''S1 S2'' b'", "select 'password=''***'' b'"),
        (
            "select '{\"user\": \"ann\", \"password\": \"S1 \\\"S2\"}'",
            "select '{\"user\": \"ann\", \"password\": \"***\"}'",
        ),
        ("select 'Authorization: Bearer S1'", "select 'Authorization: ***'"),
        ("select 'with bearer S1 sent'", "select 'with bearer *** sent'"),
        ("select 'AKIAIOSFODNN7EXAMPLE', 'eyJhbGciOi.eyJzdWIi.c2ln'", "select '***', '***'"),
        ("select \"x token=S1\"", "select \"x token=***\""),
        ("select 'token=S1", "select 'token=***"),
        ("-- password: S1 S2\nselect 1", "-- password: ***\nselect 1"),
        (
            "\\o |curl -u ann:S1 -H 'Authorization: Bearer S2' https://h/x",
            "\\o |curl -u ann:*** -H 'Authorization: ***' https://h/x",
        ),
        (
            "\\o |curl -uann:S1 --user=bob:S2 --proxy-user eve:S3",
            "\\o |curl -uann:*** --user=bob:*** --proxy-user eve:***",
        ),
        ("\\once |curl -H Authorization: Bearer S1", "\\once |curl -H Authorization:***"),
        ("\\g |curl -d '{\"password\":\"S1\"}' -b 'sid=S2'", "\\g |curl -d '{\"password\":\"***\"}' -b '***'"),
        ("\\gx |curl --data \"api_key=S1&n=1\" h", "\\gx |curl --data \"api_key=***&n=1\" h"),
        ("\\set header Bearer S1", "\\set header Bearer ***"),
        ("\\o |aws configure set aws_secret_access_key S1", "\\o |aws configure set aws_secret_access_key ***"),
        (".once |PGPASSWORD=S1 psql -p 5432", ".once |PGPASSWORD=*** psql -p 5432"),
        ("select 1 \\g |mysql -pS1 -P 3306", "select 1 \\g |mysql -p*** -P 3306"),
        ("\\o |sshpass -p S1 ssh h", "\\o |sshpass -p *** ssh h"),
        ("\\o |redis-cli -a S1", "\\o |redis-cli -a ***"),
        ("\\o |openssl enc -passin pass:S1", "\\o |openssl enc -passin ***"),
        ("\\connect https://h/x?sv=1&sig=S1", "\\connect https://h/x?sv=1&sig=***"),
        ("\\connect https://S1@h/x", "\\connect https://***@h/x"),
        ("\\connect abfss://lake@account/x", "\\connect abfss://lake@account/x"),
        ("select 'AccountKey=S1==;EndpointSuffix=h'", "select 'AccountKey=***;EndpointSuffix=h'"),
        ("select * from t where 'S1' = t.token", "select * from t where '***' = t.token"),
        (
            "select * from t where token <> 'S1' or pwd like 'S2%'",
            "select * from t where token <> '***' or pwd like '***'",
        ),
        (
            "select * from t where token not in ('S1', 'S2') and n = 3",
            "select * from t where token not in ('***') and n = 3",
        ),
        ("select * from t where token in (select x from u)", "select * from t where token in (select x from u)"),
        ("select * from t where key = $id and a.key = b.key", "select * from t where key = $id and a.key = b.key"),
        ("\\echo password: S1 S2", "\\echo password: ***"),
        ("\\echo the token is=S1", "\\echo the token is=S1"),
        ("\\echo api key=S1 n=2", "\\echo api key=*** n=2"),
        ("\\echo 密码：S1", "\\echo 密码：***"),
        ("select '密码=S1'", "select '密码=***'"),
        ("\\set 密码 S1", "\\set 密码 ***"),
        ("密码=S1", "密码=***"),
        ("password = S1;", "password = ***;"),
        ("select * from t where 口令 = 'S1'", "select * from t where 口令 = '***'"),
        ("\\g |mysql -pS1", "\\g |mysql -p***"),
        ("\\g | mysql -uroot -p12345 -P 3306", "\\g | mysql -uroot -p*** -P 3306"),
        ("\\o |psql -p 5432", "\\o |psql -p 5432"),
        ("select 'sk-S1S1S1S1S1S1S1S1S1'", "select '***'"),
        ("\\set x sk-proj-S1S1S1S1S1S1_S1", "\\set x ***"),
        ("select 'S1' as password", "select '***' as password"),
        ("select 1, 'S1' \"db token\" from t", "select 1, '***' \"db token\" from t"),
        ("select 'x' as name, 1 as key", "select 'x' as name, 1 as key"),
        ("\\pin t commit sync:118", "\\pin t commit sync:118"),
        ("\\o |sort -u -t: -k2", "\\o |sort -u -t: -k2"),
    ];
    for (text, expected) in cases {
        assert_eq!(redacted(text), expected, "{text}");
    }
}

/// Ranges that overlap hide all that either hides.
#[test]
fn overlapping_secrets_are_hidden_whole() {
    assert_eq!(merged(vec![4..9, 0..2, 7..12, 12..12, 5..6]), [0..2, 4..12]);
}
